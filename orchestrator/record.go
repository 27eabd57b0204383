package orchestrator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/orchestrator/sharedctx"
)

// maxRecorded is how many bytes of an answer a record repeats.
const maxRecorded = 2000

// record writes the end of a delegation into the shared context, in the namespace of its
// caller and in the transaction that ends it: what one agent had of another is there to
// be looked up (O23). The
// entry ages out like other learnings (K36).
func record(ctx context.Context, tx Tx, d *Delegation) error {
	if !d.Work.Record {
		return nil
	}
	value := map[string]any{"task": d.TaskID, "delegation": d.ID, "from": d.From, "to": d.To, "text": Title(d.Text), "state": string(d.State),
		"input_tokens": d.Usage.InputTokens, "output_tokens": d.Usage.OutputTokens}
	if d.Result != nil {
		value["result"] = strings.ToValidUTF8(d.Result.Text[:min(len(d.Result.Text), maxRecorded)], "")
	}
	if d.Error != nil {
		value["error"] = d.Error
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("record the end of %s: %w", d.ID, err)
	}
	var unique [4]byte
	rand.Read(unique[:]) //nolint:errcheck // crypto/rand.Read never fails
	key := sharedctx.RecordKey(d.To, tx.Now(), hex.EncodeToString(unique[:]))
	entry, err := sharedctx.New(tx.Now(), d.From, key, string(text), d.To, sharedctx.LearningsTTL)
	if err != nil {
		return fmt.Errorf("record the end of %s: %w", d.ID, err)
	}
	_, err = tx.PutEntry(ctx, entry)
	return err
}
