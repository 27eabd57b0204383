package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// Taken is the configuration that some node took last, as it was recorded.
type Taken struct {
	Settings []event.Configured // nothing where none was recorded
	At       time.Time
}

// maxKeys is how many keys that differ are named.
const maxKeys = 10

// behind refuses on a node whose rules are not those that were taken last by any node.
// Nodes read files of their own. While one of them has an older file it would count the
// yes of people who have no right any more, under rules that nobody wants any more, so it
// counts none and lands nothing, until it has taken the same. The others go on. It names the
// keys that differ, and not what they are set to, which who decides need not know.
func (c Config) behind(t Taken, now time.Time) *orchestrator.Error {
	if c.OtherRules == nil || len(t.Settings) == 0 {
		return nil
	}
	differ := c.OtherRules(t.Settings)
	if len(differ) == 0 {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeConflict, "Other rules were taken at %s than this node of Gatehouse has, so it counts no yes and lands nothing. They differ in %s. "+
		"Give all nodes the same configuration, have this one load it again (SIGHUP), and try again.", words{zone: c.Location, now: now}.at(t.At), upTo(maxKeys, differ))
}

// Behind says why this node counts no yes and lands nothing, nil where it does.
func (g *Gateway) Behind(ctx context.Context) (*orchestrator.Error, error) {
	t, err := g.store.Configuration(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading which configuration was taken last: %w", err)
	}
	return g.Config().behind(t, g.now()), nil
}

// olderHandovers reports whether this node's rules about hand-overs are not those that were
// taken last.
func (g *Gateway) olderHandovers(ctx context.Context, c Config) (bool, error) {
	if c.SameHandovers == nil {
		return false, nil
	}
	t, err := g.store.Configuration(ctx)
	if err != nil {
		return false, fmt.Errorf("reading which configuration was taken last: %w", err)
	}
	return len(t.Settings) > 0 && !c.SameHandovers(t.Settings), nil
}

// renew holds an open question, or an approval that has not landed, against the rules in
// force: whoever made a rule stricter means what has not landed yet, too. A rule that asks
// more takes the place of the one under which people were asked, with an event and cards
// for whom it names; one that asks less changes nothing, since nobody was asked less. What
// a rule denies now is refused and stays as it was, for the rule may be taken back. The
// facts are those of when people were asked, so that an hour that passes changes nothing.
// A node that is behind with its own rules refuses, too.
func (c Config) renew(ctx context.Context, tx Tx, r *Request, e Electorate) (refused *orchestrator.Error, err error) {
	if r.State != Pending && (r.State != Approved || !r.IsPatch()) { // anything else is done by its yes
		return nil, nil
	}
	taken, err := tx.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	if refused = c.behind(taken, tx.Now()); refused != nil {
		return refused, nil
	}
	now, changed, err := r.subject().ruleNow(ctx, tx, c, r)
	switch {
	case err != nil || !changed:
		return nil, err
	case now.Deny:
		return orchestrator.Errorf(orchestrator.CodeForbidden, "The rules changed since this was asked, and rule %q denies it now. Nothing landed. Reject it, or change the rule.", now.Name), nil
	}
	was := r.Rule
	next := was.Tightened(now)
	if next.Same(was) {
		return nil, nil
	}
	r.Rule = next
	if err := tx.SaveRequest(ctx, r); err != nil {
		return nil, err
	}
	for _, card := range cardsFor(*r, c.Channels, e.voters(*r)) {
		card.RequestID, card.DueAt = r.ID, tx.Now()
		if err := tx.EnsureCard(ctx, card); err != nil {
			return nil, err
		}
	}
	return nil, tx.Append(ctx, r.event("gatehouse", event.ProgressData{
		Code: event.RuleChanged, ApprovalID: r.ID, Revision: r.Revision.N, Rule: event.Given(next.Name), Need: event.Given(next.Need), From: event.Given(next.From),
		Text: fmt.Sprintf("The rules changed since people were asked: %s, and before %s.", next.Words(), was.Words())}))
}

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
