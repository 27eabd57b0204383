package approval

import (
	"context"
	"fmt"
	"time"

	"gatehouse/approval/policy"
)

// The figures of a backtest.
const (
	backtestPage = 200
	// MaxChanges is how many changed requests one backtest lists; the rest is counted.
	MaxChanges = 1000
)

// Change is one past request on which the rules that are tried say something else than
// those it was asked under.
type Change struct {
	RequestID  string        `json:"id"`
	At         time.Time     `json:"at"`
	Title      string        `json:"title"`
	Agent      string        `json:"agent"`
	Repository string        `json:"repository"`
	State      State         `json:"state"`
	Was        policy.Rule   `json:"was"`
	Would      policy.Rule   `json:"would"`
	Effect     policy.Effect `json:"effect"`
	Notes      []string      `json:"notes,omitempty"` // why a rule that matches would not have decided
}

// Backtest is what rules would have said of past requests.
type Backtest struct {
	Since    time.Time             `json:"since"`
	Version  string                `json:"version"`
	Requests int                   `json:"requests"` // that were looked at
	Same     int                   `json:"same"`
	Effects  map[policy.Effect]int `json:"effects"`
	Rules    map[string]int        `json:"rules"`   // requests by the rule that would decide
	Changes  []Change              `json:"changes"` // newest first, at most MaxChanges
}

// Backtest tries rules on the newest revision of every request that was made since
// then, and writes nothing. The facts are those stored with the revision; hour and
// weekday are of the time when it was asked.
func (g *Gateway) Backtest(ctx context.Context, p *policy.Policy, since time.Time) (Backtest, error) {
	b := Backtest{Since: since, Version: p.Version(), Effects: map[policy.Effect]int{}, Rules: map[string]int{}, Changes: []Change{}}
	c := g.Config()
	err := g.past(ctx, since, func(r Request) {
		if r.IsPatch() { // other rules are for those
			ruling := p.Strictest(factsOf(&r, r.Revision.At.In(c.Location)))
			b.try(c, r, ruling)
		}
	})
	return b, err
}

// CallTrial is what rules would have said of past calls of tools.
type CallTrial struct {
	Backtest
	Denied, Asked, Passed int
}

// BacktestCalls tries rules about calls on every call that people were asked about since then, as
// Backtest does. Of a call that the rules then in force passed or denied no input is kept, so
// that it cannot be tried.
func (g *Gateway) BacktestCalls(ctx context.Context, p *policy.ActionPolicy, since time.Time) (CallTrial, error) {
	b := CallTrial{Backtest: Backtest{Since: since, Version: p.Version(), Effects: map[policy.Effect]int{}, Rules: map[string]int{}, Changes: []Change{}}}
	c := g.Config()
	err := g.past(ctx, since, func(r Request) {
		if !r.IsAction() {
			return
		}
		call := r.Call()
		readOnly := call.Hints.ReadOnly != nil && *call.Hints.ReadOnly
		ruling, asked := p.Rule(c.actionFacts(r.Revision.At.In(c.Location), r, call), c.Agents[r.Agent].AnalysisOnly && !readOnly)
		switch {
		case ruling.Deny:
			b.Denied++
		case asked:
			b.Asked++
		default:
			b.Passed++
		}
		if ruling.Rule.Name == "" {
			ruling.Rule.Name = NoRule
		}
		b.try(c, r, ruling)
	})
	return b, err
}

// NoRule is the name under which calls pass that no rule is about.
const NoRule = "no rule"

// past goes through the requests that were made since then, newest first.
func (g *Gateway) past(ctx context.Context, since time.Time, look func(Request)) error {
	f := Filter{Limit: backtestPage}
	for {
		page, err := g.store.Requests(ctx, f)
		if err != nil {
			return fmt.Errorf("reading past requests: %w", err)
		}
		for _, r := range page.Items {
			if r.CreatedAt.Before(since) {
				return nil
			}
			if err := ctx.Err(); err != nil { // nobody waits for it any more
				return err
			}
			look(r)
		}
		if f.After = page.Next; f.After == "" {
			return nil
		}
	}
}

// try compares the stored rule of r with what was said of it now.
func (b *Backtest) try(c Config, r Request, ruling policy.Ruling) {
	was, would := r.ruled(), ruling.Rule
	would.From = c.from(would, r.Repository)
	b.Requests++
	b.Rules[would.Name]++
	if was.Same(would) {
		b.Same++
		return
	}
	ch := Change{RequestID: r.ID, At: r.Revision.At, Title: r.Title, Agent: r.Agent, Repository: r.Repository, State: r.State,
		Was: was, Would: would, Effect: policy.EffectOf(was, would)}
	for _, n := range ruling.Notes {
		ch.Notes = append(ch.Notes, n.Text)
	}
	b.Effects[ch.Effect]++
	if len(b.Changes) < MaxChanges {
		b.Changes = append(b.Changes, ch)
	}
}

// ruled is the rule under which r was asked. An escalation has added groups to it
// since, and rows of before that was stored do not say that their rule denied.
func (r Request) ruled() policy.Rule {
	rule := r.Rule
	rule.From = rule.From[:max(len(rule.From)-rule.Widened, 0)]
	for _, d := range r.Decisions {
		if d.Revision == r.Revision.N && d.User == RuleActor+rule.Name && d.Verdict == Reject {
			rule.Deny = true
		}
	}
	return rule
}

// from is whose yes counts: the rule's groups, else the repository's approvers.
func (c Config) from(r policy.Rule, repository string) []string {
	if len(r.From) > 0 || r.Deny || r.Need == 0 {
		return append([]string{}, r.From...)
	}
	return append([]string{}, c.Approvers[repository]...)
}
