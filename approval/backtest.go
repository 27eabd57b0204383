package approval

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The figures of a backtest.
const (
	backtestPage = 200
	// MaxChanges is how many changed requests one backtest lists; the rest is counted.
	MaxChanges = 1000
)

// Effect is what other rules would have meant for a request.
type Effect string

// The effects. Other is another rule with the same outcome.
const (
	Stricter Effect = "stricter"
	Looser   Effect = "looser"
	Others   Effect = "others" // the same number of people, of other groups
	Other    Effect = "other_rule"
)

// Change is one past request on which the rules that are tried say something else than
// those it was asked under.
type Change struct {
	RequestID  string    `json:"id"`
	At         time.Time `json:"at"`
	Title      string    `json:"title"`
	Agent      string    `json:"agent"`
	Repository string    `json:"repository"`
	State      State     `json:"state"`
	Was        Rule      `json:"was"`
	Would      Rule      `json:"would"`
	Effect     Effect    `json:"effect"`
	Notes      []string  `json:"notes,omitempty"` // why a rule that matches would not have decided
}

// Backtest is what rules would have said of past requests.
type Backtest struct {
	Since    time.Time      `json:"since"`
	Version  string         `json:"version"`
	Requests int            `json:"requests"` // that were looked at
	Same     int            `json:"same"`
	Effects  map[Effect]int `json:"effects"`
	Rules    map[string]int `json:"rules"`   // requests by the rule that would decide
	Changes  []Change       `json:"changes"` // newest first, at most MaxChanges
}

// Outcome says in words what a rule does: passes, denied, 2 of maintainers.
func (r Rule) Outcome() string {
	switch {
	case r.Deny:
		return "denied"
	case r.Need == 0:
		return "passes"
	case len(r.From) == 0:
		return fmt.Sprintf("%d of all approvers", r.Need)
	default:
		return fmt.Sprintf("%d of %s", r.Need, join(r.From, "or"))
	}
}

// strictness orders outcomes: what passes, what asks more and more people, what is denied.
func (r Rule) strictness() int {
	const denied = 1 << 30
	if r.Deny {
		return denied
	}
	return r.Need
}

// Backtest tries rules on the newest revision of every request that was made since
// then, and writes nothing. The facts are those stored with the revision; hour and
// weekday are of the time when it was asked.
func (g *Gateway) Backtest(ctx context.Context, p *Policy, since time.Time) (Backtest, error) {
	b := Backtest{Since: since, Version: p.Version(), Effects: map[Effect]int{}, Rules: map[string]int{}, Changes: []Change{}}
	c := g.Config()
	f := Filter{Limit: backtestPage}
	for {
		page, err := g.store.Requests(ctx, f)
		if err != nil {
			return b, fmt.Errorf("reading past requests: %w", err)
		}
		for _, r := range page.Items {
			if r.CreatedAt.Before(since) {
				return b, nil
			}
			if err := ctx.Err(); err != nil { // nobody waits for it any more
				return b, err
			}
			if r.IsHandover() { // other rules are for those
				continue
			}
			b.try(p, c, r)
		}
		if f.After = page.Next; f.After == "" {
			return b, nil
		}
	}
}

// try compares the stored rule of r with what p says.
func (b *Backtest) try(p *Policy, c Config, r Request) {
	ruling := p.Strictest(factsOf(&r, r.Revision.At.In(c.Location)))
	was, would := r.ruled(), ruling.Rule
	would.From = c.from(would, r.Repository)
	b.Requests++
	b.Rules[would.Name]++
	if was.same(would) {
		b.Same++
		return
	}
	ch := Change{RequestID: r.ID, At: r.Revision.At, Title: r.Title, Agent: r.Agent, Repository: r.Repository, State: r.State,
		Was: was, Would: would, Effect: effect(was, would)}
	for _, n := range ruling.Notes {
		ch.Notes = append(ch.Notes, n.Text)
	}
	b.Effects[ch.Effect]++
	if len(b.Changes) < MaxChanges {
		b.Changes = append(b.Changes, ch)
	}
}

func effect(was, would Rule) Effect {
	switch a, b := was.strictness(), would.strictness(); {
	case b > a:
		return Stricter
	case b < a:
		return Looser
	case !slices.Equal(was.From, would.From) && b > 0 && !was.Deny:
		return Others
	default:
		return Other
	}
}

// ruled is the rule under which r was asked. An escalation has added groups to it
// since, and rows of before that was stored do not say that their rule denied.
func (r Request) ruled() Rule {
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
func (c Config) from(r Rule, repository string) []string {
	if len(r.From) > 0 || r.Deny || r.Need == 0 {
		return append([]string{}, r.From...)
	}
	return append([]string{}, c.Approvers[repository]...)
}
