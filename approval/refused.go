package approval

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
)

// Consider says what Decide would answer to the ballot now, and stores nothing. It is
// for channels that ask for a reason first: nobody should write one in vain.
func (g *Gateway) Consider(ctx context.Context, b Ballot) (Request, error) {
	r, err := g.Request(ctx, b.RequestID)
	if err != nil {
		return Request{}, err
	}
	e, err := g.Electorate(ctx)
	if err != nil {
		return r, err
	}
	if err := g.complete(ctx, &b, r); err != nil {
		return r, err
	}
	if refused := judge(e, r, b, g.now(), g.Config().Location); refused != nil {
		return r, g.changedSince(ctx, r, b, refused)
	}
	return r, nil
}

// Refusal is a verdict that came through a channel and did not count.
type Refusal struct {
	RequestID string // "" when it named none that exists
	Actor     string // the person, or the channel's name for somebody unknown
	Channel   string
	Verdict   Verdict
	Code      string
	Message   string // what the person was told
}

// maxRefusal is how much of a message is kept, in runes.
const maxRefusal = 500

// Refused records a refusal in the history: of the request's task, or of the system
// where there is no such request.
func (g *Gateway) Refused(ctx context.Context, f Refusal) error {
	data := map[string]any{"channel": f.Channel, "code": f.Code, "message": short(plain(f.Message), maxRefusal)}
	if f.Verdict != "" {
		data["verdict"] = string(f.Verdict)
	}
	if f.RequestID != "" {
		r, err := g.store.Request(ctx, f.RequestID)
		if err == nil {
			return g.store.InTask(ctx, r.TaskID, func(tx Tx) error {
				return tx.Append(ctx, requestEvent(event.VerdictRefused, &r, f.Actor, data))
			})
		}
		if !errors.Is(err, orchestrator.ErrNotFound) {
			return fmt.Errorf("reading the request of a refused verdict: %w", err)
		}
	}
	return g.store.InTask(ctx, event.System, func(tx Tx) error {
		return tx.Append(ctx, event.Event{Type: event.VerdictRefused, Actor: f.Actor, Data: event.Data(data)})
	})
}

// short cuts s to so many runes.
func short(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
