package approval

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
)

// The figures of the outbox.
const (
	MaxAttempts  = 12               // in a row before a card is given up
	firstRetry   = time.Second      // doubled each time
	lastRetry    = 10 * time.Minute // at most
	longestRetry = 6 * time.Hour    // that a channel may ask for
	deliverTime  = 20 * time.Second // one delivery
	cardLease    = 2 * time.Minute
	cardBatch    = 32
	sweepEvery   = time.Second
)

// Run carries out deadlines and delivers cards until ctx ends, and returns when
// every delivery that it started has. Each second, or sooner after a decision on
// this node, it looks for cards that show an older version than their request's;
// every channel is served by a goroutine of its own, so a slow one holds up no
// other. A card converges to its request's newest version; versions in between may
// never be shown.
func (g *Gateway) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	busy := map[string]bool{}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for _, ch := range g.Config().Channels {
			mu.Lock()
			free := !busy[ch.Name()]
			busy[ch.Name()] = true
			mu.Unlock()
			if !free {
				continue
			}
			wg.Go(func() {
				g.logError(ctx, "delivering cards failed; trying again", g.Deliver(ctx, ch))
				mu.Lock()
				defer mu.Unlock()
				busy[ch.Name()] = false
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.wake:
		case <-tick.C:
			g.logError(ctx, "carrying out deadlines failed; trying again", g.Sweep(ctx))
		}
	}
}

// logError logs an error that is no end of ctx.
func (g *Gateway) logError(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		g.log.Error(what, "err", err)
	}
}

// Deliver brings the due cards of one channel up to date and returns when none is
// due. An error is the database's; what a channel answers is kept with its card.
func (g *Gateway) Deliver(ctx context.Context, ch Channel) error {
	for ctx.Err() == nil {
		now := g.now()
		cards, err := g.store.DueCards(ctx, []string{ch.Name()}, now, now.Add(cardLease), cardBatch)
		if err != nil {
			return fmt.Errorf("reading due cards of %s: %w", ch.Name(), err)
		}
		if len(cards) == 0 {
			return nil
		}
		e, err := g.Electorate(ctx)
		if err != nil {
			return err
		}
		for i, c := range cards {
			// Cards whose lease is nearly over, or that are left when ctx ends, go back.
			if ctx.Err() != nil || g.now().Sub(now) > cardLease-2*deliverTime {
				if err := g.release(ctx, cards[i:]); err != nil {
					return err
				}
				break
			}
			if err := g.deliverCard(ctx, ch, e, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// deliverCard makes one delivery and records how it went.
func (g *Gateway) deliverCard(ctx context.Context, ch Channel, e Electorate, c Card) error {
	r, err := g.store.Request(ctx, c.RequestID)
	if err != nil {
		return fmt.Errorf("reading request %s of a card: %w", c.RequestID, err)
	}
	if c.Channel == InboxName && r.State == Landed && r.RevertOf != "" {
		if err := g.markReverted(ctx, r); err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
	}
	within, cancel := context.WithTimeout(ctx, deliverTime)
	id, err := ch.Deliver(within, c, r, e.view(r, c.Channel))
	cancel()
	first := c.ExternalID == "" && id != ""
	if id != "" {
		c.ExternalID = id
	}
	if err != nil && ctx.Err() != nil {
		return g.release(ctx, []Card{c})
	}
	c = g.outcome(c, r, err)
	// The channel has, or has not, shown it; that is kept even when ctx ends now.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	if err := g.store.SaveCard(ctx, c); err != nil {
		return fmt.Errorf("saving the card of %s in %s: %w", c.RequestID, c.Channel, err)
	}
	if !first {
		return nil
	}
	return g.store.InTask(ctx, r.TaskID, func(tx Tx) error {
		data := map[string]any{"channel": c.Channel}
		return tx.Append(ctx, requestEvent(event.Notified, &r, "gatehouse", data))
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

// outcome is the card after a delivery that ended with err.
func (g *Gateway) outcome(c Card, r Request, err error) Card {
	now := g.now()
	if err == nil {
		c.Shown, c.Attempts, c.Error, c.Dead, c.DueAt = r.Version, 0, "", false, now
		return c
	}
	c.Attempts++
	c.Error = plain(err.Error())
	c.DueAt = now.Add(backoff(c.Attempts))
	var later retryAfter
	if errors.As(err, &later) {
		// Being asked to wait is no failure of the card.
		c.Attempts--
		c.DueAt = now.Add(min(max(later.wait, 0), longestRetry))
	}
	if c.Dead = IsGone(err) || c.Attempts >= MaxAttempts; c.Dead {
		g.log.Warn("a card was given up", "request", c.RequestID, "channel", c.Channel, "attempts", c.Attempts, "err", err)
	}
	return c
}

// backoff is the wait after the n-th failure in a row: doubled each time, and
// between half and all of that, so that many cards do not come at once.
func backoff(n int) time.Duration {
	wait := lastRetry
	if n < 20 {
		wait = min(firstRetry<<(n-1), lastRetry)
	}
	return wait/2 + rand.N(wait/2+1)
}

// RetryCard makes a card due again that was given up.
func (g *Gateway) RetryCard(ctx context.Context, requestID, channel, address string) error {
	r, err := g.Request(ctx, requestID)
	if err != nil {
		return err
	}
	for _, c := range r.Cards {
		if c.Channel == channel && c.Address == address {
			c.Dead, c.Attempts, c.Error, c.DueAt = false, 0, "", g.now()
			if err := g.store.SaveCard(ctx, c); err != nil {
				return err
			}
			g.look()
			return nil
		}
	}
	return orchestrator.Errorf(orchestrator.CodeNotFound, "This request has no card in %s.", channel)
}
