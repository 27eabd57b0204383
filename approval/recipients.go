package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// The figures of Reach.
const (
	reachEvery = time.Minute // absences begin and end without anybody telling
	reachMost  = 500         // newest pending requests that are looked through
	reachPage  = 100
)

// reached is for whom Reach has worked last. It is this node's, and forgotten with it.
type reached struct {
	mu     sync.Mutex
	config *Config
	people string
	by     *Electorate
}

// PeopleChanged says that people, their roles or accounts have changed: Run soon shows
// what waits to whoever can decide on it now.
func (g *Gateway) PeopleChanged() {
	g.changed.Store(true)
	g.look()
}

// Reach shows every pending request to those who can decide on it now and have no card
// of it: an account was linked after it was asked, an absence began or ended, the
// configuration has a further channel. Cards on which other names stand now are made
// due. Where nothing has changed since it reads the people only.
func (g *Gateway) Reach(ctx context.Context) error {
	g.reached.mu.Lock()
	defer g.reached.mu.Unlock()
	c := g.config.Load()
	e, err := g.Electorate(ctx)
	if err != nil {
		return err
	}
	who := e.fingerprint()
	if g.reached.config == c && g.reached.people == who {
		return nil
	}
	f := Filter{States: []State{Pending}, Limit: reachPage}
	var failed error
	for range reachMost / reachPage {
		page, err := g.store.Requests(ctx, f)
		if err != nil {
			return fmt.Errorf("reading what waits for people: %w", err)
		}
		for _, r := range page.Items {
			if err := g.reach(ctx, *c, e, r); err != nil {
				failed = errors.Join(failed, fmt.Errorf("showing %s to who can decide now: %w", r.ID, err))
			}
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	if failed == nil {
		g.reached.config, g.reached.people, g.reached.by = c, who, &e
	}
	return failed
}

// reach adds the cards that r lacks, and brings the others up to date where the people
// who could say yes are not those of before.
func (g *Gateway) reach(ctx context.Context, c Config, e Electorate, r Request) error {
	turned := g.reached.by != nil && !slices.Equal(g.reached.by.missing(r), e.missing(r))
	lacks := slices.ContainsFunc(cardsFor(r, c.Channels, e.voters(r)), func(card Card) bool {
		return !slices.ContainsFunc(r.Cards, func(o Card) bool { return o.Channel == card.Channel && o.Address == card.Address })
	})
	if !turned && !lacks {
		return nil
	}
	return g.inTask(ctx, r.TaskID, func(tx Tx) error {
		cur, err := tx.Request(ctx, r.ID)
		if err != nil || cur.State != Pending || cur.overdue(tx.Now()) {
			return err
		}
		if turned {
			if err := tx.SaveRequest(ctx, cur); err != nil {
				return err
			}
		}
		for _, card := range cardsFor(*cur, c.Channels, e.voters(*cur)) {
			card.RequestID, card.DueAt = cur.ID, tx.Now()
			if err := tx.EnsureCard(ctx, card); err != nil {
				return err
			}
		}
		return nil
	})
}

// fingerprint is equal for two electorates in which the same people can decide, and are
// reached in the same places.
func (e Electorate) fingerprint() string {
	var b strings.Builder
	for _, u := range e.users {
		fmt.Fprintf(&b, "%s %s %t", u.ID, u.Name, Approves(u))
		if u.Away.Now(e.now) {
			fmt.Fprintf(&b, " away %s", u.Away.To)
		}
		for _, a := range u.Accounts {
			fmt.Fprintf(&b, " %s:%d", a.Channel, a.ID)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
