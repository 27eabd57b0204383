package settings

import (
	"time"

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
	Requests int
	Same     int
	Stricter int
	Looser   int
	Others   int
	Rules    []PolicyRule
	Changes  []PolicyChange
}

// PolicyRule is one rule with how many past requests it would decide.
type PolicyRule struct {
	Name    string
	When    string
	Outcome string
	Shadow  bool
	Matched int
}

// PolicyChange is a past request that would have gone otherwise.
type PolicyChange struct {
	ID         string
	At         time.Time
	Title      string
	Agent      string
	Repository string
	State      string
	WasRule    string
	Was        string
	WouldRule  string
	Would      string
	Effect     string
}

// sinceChoices are how far back the page looks.
var sinceChoices = []struct{ Value, Text string }{{"7d", "7 days"}, {"", "30 days"}, {"90d", "90 days"}, {"365d", "a year"}}

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
func effectWords(effect string) string {
	switch effect {
	case "stricter":
		return "stricter"
	case "looser":
		return "looser"
	case "others":
		return "other people"
	default:
		return "other rule"
	}
}
