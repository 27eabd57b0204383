package settings

import (
	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/views"
)

// PolicyPage is `/settings/policy`.
type PolicyPage struct {
	Chrome   views.Chrome
	Version  string
	Since    string // as asked: 7d, 30d …
	Text     string // rules to be tried, as YAML
	Problems []string
	Hints    []string
	Trying   bool // the rules in Text are tried, not those in force
	Trial    approval.Backtest
	Rules    []PolicyRule
}

// PolicyRule is one rule with how many past requests it would decide.
type PolicyRule struct {
	Name    string
	When    string
	Outcome string
	Shadow  bool
	Matched int
}

// sinceChoices are how far back the page looks.
var sinceChoices = []struct{ Value, Text string }{{"7d", "7 days"}, {"", "30 days"}, {"90d", "90 days"}, {"365d", "a year"}}

// others counts those that other people or another rule would have decided.
func (p PolicyPage) others() int {
	return p.Trial.Effects[policy.Others] + p.Trial.Effects[policy.Other]
}

// sinceWords is the choice in words.
func (p PolicyPage) sinceWords() string {
	for _, s := range sinceChoices {
		if s.Value == p.Since {
			return "the last " + s.Text
		}
	}
	return "the last " + p.Since
}

// effectWords says what other rules would have meant.
func effectWords(effect policy.Effect) string {
	switch effect {
	case policy.Stricter:
		return "stricter"
	case policy.Looser:
		return "looser"
	case policy.Others:
		return "other people"
	default:
		return "other rule"
	}
}
