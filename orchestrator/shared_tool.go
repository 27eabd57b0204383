package orchestrator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/sharedctx"
)

// shared is a run's shared context in the words of agent.Shared: what the agent may not
// do is a *agent.Failure, which a model reads as the answer of its call.
type shared struct{ in runContext }

// Shared is the shared context with this run as its reader and writer.
func (r *run) Shared() agent.Shared { return shared{r.context()} }

// Get reads one value.
func (s shared) Get(ctx context.Context, namespace, key string) (agent.ContextEntry, bool, error) {
	e, err := s.in.Get(ctx, namespace, key)
	if errors.Is(err, ErrNotFound) {
		return agent.ContextEntry{}, false, nil
	}
	return entryOf(e), err == nil, told(err)
}

// Prefix reads what begins with prefix.
func (s shared) Prefix(ctx context.Context, namespace, prefix string, limit int) ([]agent.ContextEntry, error) {
	found, err := s.in.Prefix(ctx, namespace, prefix, limit)
	all := make([]agent.ContextEntry, 0, len(found))
	for _, e := range found {
		all = append(all, entryOf(e))
	}
	return all, told(err)
}

// Set writes one value.
func (s shared) Set(ctx context.Context, w agent.ContextWrite) error {
	return s.in.r.PutContext(ctx, w)
}

// Touch prolongs the life of a value.
func (s shared) Touch(ctx context.Context, namespace, key string, ttlSeconds int64) (bool, error) {
	_, err := s.in.Touch(ctx, namespace, key, lifeSpan(ttlSeconds))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, told(err)
}

// Delete removes a value; one that is gone is no error.
func (s shared) Delete(ctx context.Context, namespace, key string) error {
	err := s.in.Delete(ctx, namespace, key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return told(err)
}

// PutContext writes one value of the shared context as this agent.
func (r *run) PutContext(ctx context.Context, w agent.ContextWrite) error {
	w.Namespace = r.context().board(w.Namespace)
	life := lifeSpan(w.TTLSeconds)
	switch {
	case life != 0:
	case w.Extend:
		life = sharedctx.ExtensionTTL
	default:
		life = r.e.Config().Lifespans.Of(w.Namespace)
	}
	e, err := sharedctx.New(r.e.Now(), w.Namespace, w.Key, w.Value, r.d.To, life)
	if err != nil {
		// The agent's fault: trying again would end the same way.
		return agent.Fail(agent.CodeProtocol, "%s wrote something that the shared context does not take: %v.", r.d.To, err)
	}
	if w.Extend {
		_, err = r.context().Extend(ctx, e)
	} else {
		_, err = r.context().Set(ctx, e)
	}
	return told(err)
}

// told makes a refusal the agent's own failure, with its sentence.
func told(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && (e.Code == CodeForbidden || e.Code == CodeBadRequest) {
		return &agent.Failure{Code: e.Code, Message: e.Message}
	}
	return err
}

// lifeSpan turns seconds that an agent names into a duration; what would overflow is
// longer than any that is taken, and less than none stays so.
func lifeSpan(seconds int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	return time.Duration(max(min(seconds, most), -most)) * time.Second
}

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
