package telegram

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"

	"gatehouse/approval"
)

// Bound is what a button stands for: one verdict on one revision, under one message. The
// button itself carries random text of which only the hash is stored.
type Bound struct {
	Hash      string // of the button's text, 64 hex digits
	RequestID string // "" for the button of a test
	Revision  int
	Digest    string
	Chat      int64
	Message   int // that it is under; 0 until that is known
	Verdict   approval.Verdict
	At        time.Time
}

// ButtonStore keeps buttons. Those of old revisions stay known, so that a late tap gets
// an answer.
type ButtonStore interface {
	AddButtons(ctx context.Context, buttons []Bound) error
	// PutButtons records which message buttons are under, once it was sent.
	PutButtons(ctx context.Context, hashes []string, message int) error
}

// tested is the verdict of a test's button: none.
const tested approval.Verdict = "test"

var buttonWords = map[approval.Verdict]string{approval.Approve: approveButton, approval.Reject: rejectButton, approval.RequestChanges: changesButton}

// renewWords say what is offered in place of Approve where a yes would land nothing.
func renewWords(r approval.Request) string {
	return fmt.Sprintf("Make revision %d on today's %s", r.Revision.N+1, cut(name(r.Revision.Base.Branch), 20))
}

// bind makes a row of buttons for the verdicts and stores them.
func (c *Channel) bind(ctx context.Context, to Place, message int, r approval.Request, verdicts []approval.Verdict) ([]Button, error) {
	var row []Button
	var bound []Bound
	for _, v := range verdicts {
		words := buttonWords[v]
		if v == approval.Renew {
			words = renewWords(r)
		}
		if words == "" {
			continue
		}
		b, data := c.newButton(to)
		b.Message, b.RequestID, b.Revision, b.Digest, b.Verdict = message, r.ID, r.Revision.N, r.Revision.Digest, v
		bound, row = append(bound, b), append(row, Button{Text: words, Data: data})
	}
	if len(bound) == 0 {
		return nil, nil
	}
	if err := c.buttons.AddButtons(ctx, bound); err != nil {
		return nil, fmt.Errorf("storing the buttons of %s: %w", r.ID, err)
	}
	return row, nil
}

// newButton makes a button's text, 43 characters, and what is stored of it.
func (c *Channel) newButton(to Place) (Bound, string) {
	var random [32]byte
	rand.Read(random[:]) //nolint:errcheck // crypto/rand.Read never fails
	data := base64.RawURLEncoding.EncodeToString(random[:])
	return Bound{Hash: buttonHash(data), Chat: to.Chat, At: c.now()}, data
}

func buttonHash(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

// under records which message the buttons of m are under. That it fails is no harm: they
// are bound to their chat all the same.
func (c *Channel) under(ctx context.Context, m Message, message int) {
	var hashes []string
	for _, row := range m.Rows {
		for _, b := range row {
			if b.Data != "" {
				hashes = append(hashes, buttonHash(b.Data))
			}
		}
	}
	if err := c.buttons.PutButtons(ctx, hashes, message); err != nil {
		c.log.Warn("which message buttons are under could not be stored", "err", err)
	}
}
