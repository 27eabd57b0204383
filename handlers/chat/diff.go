package chat

import (
	"context"
	"strings"
	"sync"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/handlers/change"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	view "gatehouse/views/chat"
	"gatehouse/views/diff"
)

// cardDiffs keeps the drawn lines of small changes: the two trees of a revision never
// change, and a chat with many cards is drawn anew with each of their events.
type cardDiffs struct {
	mu    sync.Mutex
	drawn map[string][]diff.DiffFile // by request and digest
}

// maxCardDiffs is how many are kept; each has at most a few kB of changed lines.
const maxCardDiffs = 64

func (c *cardDiffs) get(key string) ([]diff.DiffFile, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	files, ok := c.drawn[key]
	return files, ok
}

func (c *cardDiffs) put(key string, files []diff.DiffFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drawn == nil || len(c.drawn) >= maxCardDiffs {
		c.drawn = map[string][]diff.DiffFile{}
	}
	c.drawn[key] = files
}

// cardFiles is how many names a card lists that has no room for the lines.
const cardFiles = 6

// chatCard is a request as a card of the chat. It offers a yes only with all of the change
// in it; else it leads to the page.
func (p *Pages) chatCard(f *handlers.Frame, r approval.Request) view.ChatCard {
	card := chatCard(f, r)
	var err error
	if card.Missed, err = p.Gateway.MissedBy(f.Ctx, r, f.Who.User.ID); err != nil {
		p.Log.Warn("what became of a yes could not be read", "request", r.ID, "err", err)
	}
	if r.State != approval.Pending || !r.IsPatch() || !f.Who.Has(people.ApprovalsRead) {
		return card
	}
	v := r.Revision
	if r.FitsCard() {
		files, err := p.cardDiff(f.Ctx, r)
		if err == nil && drawnWhole(files) {
			card.Changed, card.Whole = files, true
			return card
		}
		p.Log.Warn("a card of the chat could not show its change", "request", r.ID, "err", err)
		if card.CanApprove {
			card.CanApprove, card.WhyNot = false, "To approve, open the diff: it could not be shown here."
		}
	}
	for i, x := range v.Files[:min(len(v.Files), cardFiles)] {
		card.Changed = append(card.Changed, change.FileRow(i+1, x, v))
	}
	card.Unlisted = len(v.Files) - len(card.Changed)
	return card
}

// wholeOnCard reports whether the card of a request shows all of its change.
func (p *Pages) wholeOnCard(ctx context.Context, r approval.Request) bool {
	if r.State != approval.Pending || !r.IsPatch() || !r.FitsCard() {
		return false
	}
	files, err := p.cardDiff(ctx, r)
	return err == nil && drawnWhole(files)
}

// cardDiff draws all lines of a small change.
func (p *Pages) cardDiff(ctx context.Context, r approval.Request) ([]diff.DiffFile, error) {
	v := r.Revision
	key := r.ID + " " + v.Digest
	if files, ok := p.cards.get(key); ok {
		return files, nil
	}
	files := make([]diff.DiffFile, len(v.Files))
	for i, x := range v.Files {
		files[i] = change.FileRow(i+1, x, v)
	}
	rows := change.MaxRows
	err := p.Reviewer.EachHunks(ctx, v, r.Repository, func(int) bool { return true }, change.UsualContext, func(i int, hunks []patch.Hunk) error {
		d := change.Drawing{N: i + 1, Path: v.Files[i].Path, W: change.Window{From: 0, To: patch.CardLines + 1}, Total: -1}
		files[i].Hunks, _ = change.HunksOf(d, hunks, &rows)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.cards.put(key, files)
	return files, nil
}

// drawnWhole reports whether every changed line that was counted is drawn, and all of it.
func drawnWhole(files []diff.DiffFile) bool {
	for _, f := range files {
		changed := 0
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				if l.Op == diff.OpContext {
					continue
				}
				if changed++; l.Cut > 0 {
					return false
				}
			}
		}
		if changed != f.Added+f.Removed {
			return false
		}
	}
	return true
}

// whyNotOnCard is why a card that would let a person approve does not: the same conditions
// as the judge of the verdict has.
func whyNotOnCard(r approval.Request) string {
	thing := "diff"
	if !r.IsPatch() {
		thing = "page"
	}
	risk := approval.RiskOf(r)
	switch {
	case risk.Level == approval.Careful:
		return "To approve, open the " + thing + ": " + reasonWords(risk.Reasons) + "."
	case !inChat(r):
		return "To approve, open the " + thing + ": approvals of " + r.Agent + " are not given in the chat."
	case !r.FitsCard():
		return "To approve, open the " + thing + ": " + strings.TrimSpace(unfit(r)) + "."
	}
	return ""
}

// unfit is why a change does not fit a card, within a sentence.
func unfit(r approval.Request) string {
	for _, x := range r.Revision.Files {
		switch {
		case x.Moved():
			return "a file came from another place, with more than a card shows"
		case x.Binary:
			return "a file is no text"
		}
	}
	return "it is too long for a card"
}
