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
	ForTask   bool // with Approve of a call: for the rest of the task
	Choice    int  // with Respond: which of the choices, from 1
	At        time.Time
}

// ButtonStore keeps buttons, and which messages take a reply. Those of old revisions stay
// known, so that a late tap gets an answer.
type ButtonStore interface {
	AddPrompt(ctx context.Context, p Prompt) error
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

// offer is a button before it is bound: what it says, and what it stands for.
type offer struct {
	words   string
	verdict approval.Verdict
	forTask bool
	choice  int
}

// offers are the buttons of a pending request's card, in rows. inline says that all of what
// is asked is in the card.
func (f face) offers(inline bool) [][]offer {
	if f.r.IsQuestion() {
		return f.replies(inline)
	}
	var row []offer
	for _, v := range f.view.Verdicts {
		words := buttonWords[v]
		if v == approval.Renew {
			words = renewWords(f.r)
		}
		if words == "" || v == approval.Approve && !f.offersYes(inline) {
			continue
		}
		row = append(row, offer{words: words, verdict: v})
		if v == approval.Approve && f.offersScope(inline) {
			row = append(row, offer{words: scopeButton, verdict: v, forTask: true})
		}
	}
	return [][]offer{row}
}

// bind makes buttons of the offers and stores them.
func (c *Channel) bind(ctx context.Context, to Place, message int, r approval.Request, offers [][]offer) ([][]Button, error) {
	var rows [][]Button
	var bound []Bound
	for _, offered := range offers {
		var row []Button
		for _, o := range offered {
			b, data := c.newButton(to)
			b.Message, b.RequestID, b.Revision, b.Digest = message, r.ID, r.Revision.N, r.Revision.Digest
			b.Verdict, b.ForTask, b.Choice = o.verdict, o.forTask, o.choice
			bound, row = append(bound, b), append(row, Button{Text: o.words, Data: data})
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	if len(bound) == 0 {
		return nil, nil
	}
	if err := c.buttons.AddButtons(ctx, bound); err != nil {
		return nil, fmt.Errorf("storing the buttons of %s: %w", r.ID, err)
	}
	return rows, nil
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
