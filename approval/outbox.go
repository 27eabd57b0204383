package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// The figures of the outbox.
const (
	MaxAttempts  = 24 // in a row, the last of them a refusal, before a card is given up
	awayAttempts = 12 // the most that are counted while nobody answers: so many refusals are still to come
	leastRetry   = 100 * time.Millisecond
	firstRetry   = time.Second      // doubled each time
	lastRetry    = 15 * time.Minute // at most
	nearRetry    = 30 * time.Second // at most while the other side is known to answer
	longestRetry = 6 * time.Hour    // that a channel may ask for
	deliverTime  = 20 * time.Second // one delivery
	cardLease    = time.Minute      // after the death of a node; one that comes back returns its own
	cardBatch    = 32               // cards that are edited in one lease
	newBatch     = 8                // messages that are sent in one lease
	digestBatch  = 1                // each may take deliverTime and reads up to 50 requests
	sweepEvery   = time.Second
)

// Run carries out deadlines, reminds, escalates and delivers cards, digests and
// notices until ctx ends, and returns when every delivery that it started has. Each
// second, or sooner after a decision on this node, it looks for what shows an older
// version than its request's. Every channel is served by two goroutines of its own,
// one for edits and one for what is new: a slow channel holds up no other, and a
// flood of new cards does not keep a decided one from showing that. A card converges
// to its request's newest version; versions in between may never be shown.
func (g *Gateway) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	busy := map[string]bool{}
	start := func(lane string, work func(context.Context, Channel) (int, error), ch Channel) bool {
		mu.Lock()
		defer mu.Unlock()
		if busy[lane] {
			return false
		}
		busy[lane] = true
		wg.Go(func() {
			g.logError(ctx, "delivering failed; trying again", all(ctx, work, ch))
			mu.Lock()
			defer mu.Unlock()
			busy[lane] = false
		})
		return true
	}
	reach := func(ctx context.Context, _ Channel) (int, error) { return 0, g.Reach(ctx) }
	branches := func(ctx context.Context, _ Channel) (int, error) { return 0, g.LookAtBranches(ctx) }
	var reached, looked time.Time
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	g.logError(ctx, "what was on its way before could not be taken back; it is delivered when its lease ends", g.store.Returned(ctx))
	for {
		for _, ch := range g.Config().Channels {
			start(string(ch.Name())+" edits", g.deliverEdits, ch)
			start(string(ch.Name())+" new", g.deliverNew, ch)
		}
		// One that is on its way may have read the people before they changed.
		if g.changed.Swap(false) && !start("reach", reach, nil) {
			g.changed.Store(true)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.wake:
		case at := <-tick.C:
			if at.Sub(looked) >= lookEvery && start("branches", branches, nil) {
				looked = at
			}
			if at.Sub(reached) >= reachEvery {
				reached = at
				g.changed.Store(true)
			}
			g.logError(ctx, "carrying out deadlines failed; trying again", g.Sweep(ctx))
			g.logError(ctx, "reminding failed; trying again", g.Act(ctx))
		}
	}
}

// logError logs an error that is no end of ctx.
func (g *Gateway) logError(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		g.log.Error(what, "err", err)
	}
}

// all repeats work until it finds nothing to do.
func all(ctx context.Context, work func(context.Context, Channel) (int, error), ch Channel) error {
	for ctx.Err() == nil {
		if n, err := work(ctx, ch); n == 0 || err != nil {
			return err
		}
	}
	return nil
}

// Deliver brings everything of one channel up to date that is due, and returns when
// nothing is. An error is the database's; what a channel answers is kept with the card,
// digest or notice.
func (g *Gateway) Deliver(ctx context.Context, ch Channel) error {
	return all(ctx, func(ctx context.Context, ch Channel) (int, error) {
		n, err := g.deliverEdits(ctx, ch)
		if err != nil {
			return n, err
		}
		m, err := g.deliverNew(ctx, ch)
		return n + m, err
	}, ch)
}

// deliverEdits makes one round of edits and reports how many there were.
func (g *Gateway) deliverEdits(ctx context.Context, ch Channel) (int, error) {
	n, err := g.deliverCards(ctx, ch, g.store.DueEdits, cardBatch)
	if err != nil {
		return n, err
	}
	m, err := g.deliverDigests(ctx, ch, true)
	if err != nil {
		return n + m, err
	}
	k, err := g.deliverReports(ctx, ch, true)
	return n + m + k, err
}

// deliverNew makes one round of what is new. Cards come before the digests that they
// may become lines of, so that one message has as many of them as it can.
func (g *Gateway) deliverNew(ctx context.Context, ch Channel) (int, error) {
	n, err := g.deliverNotices(ctx, ch)
	if err != nil {
		return n, err
	}
	k, err := g.deliverReports(ctx, ch, false) // somebody waits for the answer to what they wrote
	if n += k; err != nil {
		return n, err
	}
	m, err := g.deliverCards(ctx, ch, g.store.DueCards, newBatch)
	if err != nil || m > 0 {
		return n + m, err
	}
	m, err = g.deliverDigests(ctx, ch, false)
	return n + m, err
}

// deliverCards makes one round of deliveries.
func (g *Gateway) deliverCards(ctx context.Context, ch Channel, due func(context.Context, []origin.Channel, time.Time, time.Time, int) ([]Card, error), limit int) (int, error) {
	now := g.now()
	cards, err := due(ctx, []origin.Channel{ch.Name()}, now, now.Add(cardLease), limit)
	if err != nil {
		return 0, fmt.Errorf("reading due cards of %s: %w", ch.Name(), err)
	}
	if len(cards) == 0 {
		return 0, nil
	}
	e, err := g.Electorate(ctx)
	if err != nil {
		return 0, err
	}
	for i, c := range cards {
		// Cards whose lease is nearly over, or that are left when ctx ends, go back.
		if ctx.Err() != nil || g.now().Sub(now) > cardLease-2*deliverTime {
			return i, g.release(ctx, cards[i:])
		}
		if err := g.deliverCard(ctx, ch, e, c); err != nil {
			return i, err
		}
	}
	return len(cards), nil
}

// deliverCard makes one delivery and records how it went.
func (g *Gateway) deliverCard(ctx context.Context, ch Channel, e Electorate, c Card) error {
	if _, ok := ch.(Digester); ok && c.Shown == 0 && c.SentAt == nil {
		if in, err := g.store.IntoDigest(ctx, c, flood); in || err != nil {
			return err
		}
	}
	r, err := g.store.Request(ctx, c.RequestID)
	if err != nil {
		return fmt.Errorf("reading request %s of a card: %w", c.RequestID, err)
	}
	if c.Channel == origin.Inbox && r.State == Landed && r.RevertOf != "" {
		if err := g.markReverted(ctx, r); err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
	}
	view := e.view(r, c.Channel)
	if err := g.viewLanding(ctx, r, &view); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, deliverTime)
	id, err := ch.Deliver(within, c, r, view)
	cancel()
	first := c.ExternalID == "" && id != ""
	c.sent(id, g.now())
	if err != nil && ctx.Err() != nil {
		return g.release(ctx, []Card{c})
	}
	c = g.outcome(ctx, c, r, err)
	// The channel has, or has not, shown it; that is kept even when ctx ends now.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	if err := g.store.SaveCard(ctx, c); err != nil {
		return fmt.Errorf("saving the card of %s in %s: %w", c.RequestID, c.Channel, err)
	}
	if !first {
		return nil
	}
	return g.notified(ctx, r, c.Channel)
}

// viewLanding adds what the delegation knows of the landing of r.
func (g *Gateway) viewLanding(ctx context.Context, r Request, view *CardView) error {
	if r.State != Approved && r.State != Landed {
		return nil
	}
	d, err := g.store.Delegation(ctx, r.DelegationID)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the landing of %s: %w", r.ID, err)
	}
	if d.ApprovalID == r.ID { // a later request of it has a landing of its own
		view.LeftOut = d.Work.Declined
		if d.State == orchestrator.Landing {
			view.Held = d.Work.Problem
		}
	}
	return nil
}

// notified records that a card was delivered for the first time, as a message or as a
// line of a digest.
func (g *Gateway) notified(ctx context.Context, r Request, channel origin.Channel) error {
	return g.store.InGate(ctx, r.TaskID, func(tx Tx) error {
		return tx.Append(ctx, r.event("gatehouse", event.NotifiedData{About: r.about(), Channel: channel}))
	})
}

// release makes leased cards that were not delivered due again, also when ctx has
// ended: whoever runs next need not wait for the lease.
func (g *Gateway) release(ctx context.Context, cards []Card) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	for _, c := range cards {
		c.DueAt = g.now()
		if err := g.store.SaveCard(ctx, c); err != nil {
			return fmt.Errorf("giving back the card of %s in %s: %w", c.RequestID, c.Channel, err)
		}
	}
	return nil
}

// sent keeps the name of a card's message, also where a part of it is still missing.
func (c *Card) sent(id string, now time.Time) {
	if id == "" {
		return
	}
	c.ExternalID = id
	c.SentAt = cmp.Or(c.SentAt, &now)
}

// outcome is the card after a delivery that ended with err.
func (g *Gateway) outcome(ctx context.Context, c Card, r Request, err error) Card {
	now := g.now()
	if err == nil {
		c.SentAt = cmp.Or(c.SentAt, &now)
		c.Shown, c.Attempts, c.Error, c.Dead, c.DueAt = r.Version, 0, "", false, now
		return c
	}
	c.Attempts, c.DueAt, c.Dead = g.later(ctx, c.Channel, c.Attempts, err)
	c.Error = plain(err.Error())
	if c.Dead {
		g.log.Warn("a card was given up", "request", c.RequestID, "channel", c.Channel, "attempts", c.Attempts, "err", err)
	}
	return c
}

// later says how often a delivery that failed with err has failed in a row now, when
// to try again, and whether to give up. Only an answer ends a delivery: Gone at once, and
// Refused once it was heard often enough. A service that does not answer has refused
// nothing, so that is tried again for as long as it takes.
func (g *Gateway) later(ctx context.Context, channel origin.Channel, attempts int, err error) (failed int, due time.Time, dead bool) {
	if wait, ok := errors.AsType[retryAfter](err); ok {
		// Being asked to wait is no failure.
		return attempts, g.now().Add(min(max(wait.wait, leastRetry), longestRetry)), false
	}
	attempts++
	switch {
	case IsGone(err):
		return attempts, g.now(), true
	case IsRefused(err):
		dead = attempts >= MaxAttempts
	default:
		attempts = min(attempts, awayAttempts)
	}
	return attempts, g.now().Add(backoff(attempts, g.longest(ctx, channel))), dead
}

// longest is the ceiling of the pauses between attempts. Where the other side is known
// to answer it is a short one: a delivery that was on its way when health returned fails
// after that, and must not wait as if nobody were there.
func (g *Gateway) longest(ctx context.Context, channel origin.Channel) time.Duration {
	known, err := g.store.Health(ctx)
	g.logError(ctx, "how a channel is could not be read; its next attempt comes later", err)
	if slices.ContainsFunc(known, func(h Health) bool { return h.Channel == channel && h.State == Connected }) {
		return nearRetry
	}
	return lastRetry
}

// backoff is the wait after the n-th failure in a row: doubled each time up to longest,
// and between half and all of that, so that many cards do not come at once.
func backoff(n int, longest time.Duration) time.Duration {
	wait := longest
	if n < 20 {
		wait = min(firstRetry<<(n-1), longest)
	}
	return wait/2 + rand.N(wait/2+1)
}
