package approval

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gatehouse/approval/policy"
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
	if r.State != Pending && (r.State != Approved || r.IsHandover()) { // a hand-over is made by its yes
		return nil, nil
	}
	taken, err := tx.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	if refused = c.behind(taken, tx.Now()); refused != nil {
		return refused, nil
	}
	now, changed, err := c.ruleNow(ctx, tx, r)
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

// ruleNow is what the rules in force say of r; changed is not set where they are those
// under which people were asked.
func (c Config) ruleNow(ctx context.Context, tx Tx, r *Request) (rule policy.Rule, changed bool, err error) {
	if !r.IsHandover() {
		if r.Rule.Version == c.Policy.Version() {
			return r.Rule, false, nil
		}
		return c.rule(r, r.Revision.At).Rule, true, nil
	}
	if c.Handovers == nil || r.Rule.Version == c.Handovers.Version() {
		return r.Rule, false, nil
	}
	child, err := tx.Delegation(ctx, r.DelegationID)
	if err != nil {
		return r.Rule, false, err
	}
	f := handoverFacts(tx.Task(), child, orchestrator.Handed{Question: *r.Question}, r.Revision.At.In(c.Location))
	f.Files = policy.PatchFactsOf(r.Revision.Files, r.Revision.Added, r.Revision.Removed).Files
	ruling, _ := c.Handovers.Rule(f, true) // it was asked
	ruling.Rule.From, ruling.Rule.OnNo = c.from(ruling.Rule, r.Repository), cmp.Or(ruling.Rule.OnNo, c.OnNo)
	return ruling.Rule, true, nil
}
