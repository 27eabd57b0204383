package approval

import (
	"context"
	"fmt"
	"slices"

	"gatehouse/orchestrator"
)

// NoticePrefix begins the ids of notices.
const NoticePrefix = "ntc_"

// notify adds a notice of r for the addresses that people still have to act at.
func notify(ctx context.Context, tx Tx, c Config, e Electorate, r *Request, kind NoticeKind, to []string) error {
	cards, err := tx.Cards(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("reading where %s is shown: %w", r.ID, err)
	}
	for _, ch := range c.Channels {
		if _, ok := ch.(Noticer); !ok {
			continue
		}
		for _, address := range toldAt(*r, ch, cards, e) {
			n := Notice{ID: orchestrator.NewID(NoticePrefix, tx.Now()), RequestID: r.ID, Revision: r.Revision.N, Channel: ch.Name(),
				Address: address, Kind: kind, To: to, DueAt: tx.Now()}
			if err := tx.InsertNotice(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// toldAt are the addresses of ch with a card of r, without those of people who have
// said yes already; all of them when nobody is left who could.
func toldAt(r Request, ch Channel, cards []Card, e Electorate) []string {
	var all, open []string
	for _, c := range cards {
		if c.Channel == ch.Name() {
			all = append(all, c.Address)
		}
	}
	a, ok := ch.(Addresser)
	if !ok {
		return all
	}
	now := a.Addresses(r, e.voters(r))
	for _, address := range all {
		if slices.Contains(now, address) {
			open = append(open, address)
		}
	}
	if len(open) == 0 {
		return all
	}
	return open
}

// deliverNotices sends what a channel should say once, and reports how many notices
// there were. One whose question was answered meanwhile is dropped.
func (g *Gateway) deliverNotices(ctx context.Context, ch Channel) (int, error) {
	to, ok := ch.(Noticer)
	if !ok {
		return 0, nil
	}
	now := g.now()
	due, err := g.store.DueNotices(ctx, ch.Name(), now, now.Add(cardLease), newBatch)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	e, err := g.Electorate(ctx)
	if err != nil {
		return 0, err
	}
	for i, n := range due {
		if ctx.Err() != nil || g.now().Sub(now) > cardLease-2*deliverTime {
			return i, g.releaseNotices(ctx, due[i:])
		}
		if err := g.deliverNotice(ctx, to, e, n); err != nil {
			return i, err
		}
	}
	return len(due), nil
}

func (g *Gateway) deliverNotice(ctx context.Context, to Noticer, e Electorate, n Notice) error {
	r, err := g.store.Request(ctx, n.RequestID)
	if err != nil {
		return fmt.Errorf("reading request %s of a notice: %w", n.RequestID, err)
	}
	if r.State == Pending && r.Revision.N == n.Revision && !r.overdue(g.now()) {
		within, cancel := context.WithTimeout(ctx, deliverTime)
		err = to.Notify(within, n, r, e.view(r, n.Channel))
		cancel()
		if err != nil && ctx.Err() != nil {
			return g.releaseNotices(ctx, []Notice{n})
		}
	}
	if err == nil {
		n.SentAt, n.Attempts, n.Error, n.Dead = new(g.now()), 0, "", false
	} else {
		n.Attempts, n.DueAt, n.Dead = g.later(ctx, n.Channel, n.Attempts, err)
		n.Error = plain(err.Error())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	if err := g.store.SaveNotice(ctx, n); err != nil {
		return fmt.Errorf("saving the notice %s: %w", n.ID, err)
	}
	return nil
}

// releaseNotices makes leased notices that were not sent due again.
func (g *Gateway) releaseNotices(ctx context.Context, all []Notice) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	for _, n := range all {
		n.DueAt = g.now()
		if err := g.store.SaveNotice(ctx, n); err != nil {
			return fmt.Errorf("giving back the notice %s: %w", n.ID, err)
		}
	}
	return nil
}
