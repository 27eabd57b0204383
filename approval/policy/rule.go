package policy

import (
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/patch"
)

// Rule is the rule that matched, as it was then.
type Rule struct {
	Name    string   `json:"name"`
	When    string   `json:"when,omitempty"`
	Need    int      `json:"need"`
	From    []string `json:"from"`
	Deny    bool     `json:"deny,omitempty"`
	Widened int      `json:"widened,omitempty"` // how many groups at the end of From an escalation added
	OnNo    string   `json:"on_no,omitempty"`   // of a hand-over: EndTask, or "" for its caller to go on
	Version string   `json:"version,omitempty"` // of the whole list of rules: the first 12 digits of its hash
}

// Default asks any one approver; it decides where no other rule matches.
func Default() Rule { return Rule{Name: "default", Need: 1, From: []string{}} }

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
		return fmt.Sprintf("%d of %s", r.Need, Join(r.From, "or"))
	}
}

// Words say in a sentence what a rule asks.
func (r Rule) Words() string {
	switch {
	case r.Need == 0:
		return fmt.Sprintf("rule %q passes it", r.Name)
	case len(r.From) == 0 && r.Need == 1:
		return fmt.Sprintf("rule %q needs 1 approver", r.Name)
	case len(r.From) == 0:
		return fmt.Sprintf("rule %q needs %d approvers", r.Name, r.Need)
	default:
		return fmt.Sprintf("rule %q needs %d of %s", r.Name, r.Need, Join(r.From, "or"))
	}
}

// Join lists names as a person would: "ann, bob or cleo".
func Join(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}

// Same reports whether two rules ask the same of people.
func (r Rule) Same(o Rule) bool {
	return r.Name == o.Name && r.Deny == o.Deny && r.Need == o.Need && slices.Equal(r.From, o.From)
}

// strictness orders outcomes: what passes, what asks more and more people, what is denied.
func (r Rule) strictness() int {
	const denied = 1 << 30
	if r.Deny {
		return denied
	}
	return r.Need
}

// stricter reports whether r asks more than o; see Policy.Strictest.
func (r Rule) stricter(o Rule) bool {
	if a, b := r.strictness(), o.strictness(); a != b {
		return a > b
	}
	return !r.Deny && r.Need > 0 && len(r.From) > 0 && len(o.From) == 0
}

// Tightened is r with what now asks beyond it. Groups that an escalation added to r count
// as r's only while the rule names the same ones.
func (r Rule) Tightened(now Rule) Rule {
	own := r.From[:max(0, len(r.From)-r.Widened)]
	narrower := len(now.From) > 0 && (len(own) == 0 || slices.ContainsFunc(own, func(g string) bool { return !slices.Contains(now.From, g) }))
	if now.Need <= r.Need && !narrower {
		return r
	}
	now.Need = max(now.Need, r.Need)
	if !narrower {
		now.From, now.Widened = r.From, r.Widened
	}
	return now
}

// Effect is what other rules would have meant for a request.
type Effect string

// The effects. Other is another rule with the same outcome.
const (
	Stricter Effect = "stricter"
	Looser   Effect = "looser"
	Others   Effect = "others" // the same number of people, of other groups
	Other    Effect = "other_rule"
)

// EffectOf is what would in place of was means.
func EffectOf(was, would Rule) Effect {
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

// strictestOf is said, or what the strictest rule that asks people says, whether it matches
// or not. It holds where some rule could not be evaluated: what an agent makes may be the
// reason, so that a rule that breaks never leads to fewer or other people.
func (p *Policy) strictestOf(said Ruling, trial bool) Ruling {
	for _, r := range p.list() {
		if r.Shadow && !trial || r.Deny || r.need == 0 {
			continue
		}
		if rule := r.said(p.version); rule.stricter(said.Rule) {
			said.Rule, said.Deny, said.Expires = rule, false, r.Expires
		}
	}
	return said
}

// said is the rule as it is stored with what it decides.
func (r rule) said(version string) Rule {
	return Rule{Name: r.Name, When: r.When, Need: r.need, From: append([]string{}, r.From...), Deny: r.Deny, OnNo: r.OnNo, Version: version}
}

// RuleError is the code of the note, and of the warning, that a rule could not be evaluated.
const RuleError = "rule_error"

func ruleError(r rule, err error) patch.Note {
	return patch.Note{Code: RuleError, Text: fmt.Sprintf("Rule %q could not be evaluated (%v), so people decide, as the strictest rule asks for.", r.Name, err)}
}

// What may happen when people do not say yes to a hand-over (H18).
const (
	TellCaller = "tell" // its caller reads it as data, and goes on; what holds where nothing is said
	EndTask    = "end"  // the whole task ends with it
)

// CheckOnNo returns a sentence about what is wrong with a setting on_no.
func CheckOnNo(s string) error {
	if s != "" && s != TellCaller && s != EndTask {
		return fmt.Errorf("on_no is %q. Write end, so that a no ends the task, or tell, so that the caller reads it and goes on", s)
	}
	return nil
}
