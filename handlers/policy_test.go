package handlers_test

import (
	"testing"

	"gatehouse/approval"
	"gatehouse/handlers"
)

// A rule that names no groups is shown with those whom its repository asks, as cards show it.
func TestARuleIsShownWithTheApproversOfItsRepositories(t *testing.T) {
	one, two := map[string][]string{"app": {"maintainers"}}, map[string][]string{"app": {"maintainers"}, "web": {"leads"}}
	for name, c := range map[string]struct {
		rule         approval.Rule
		approvers    map[string][]string
		repositories []string
		want         string
	}{
		"nobody is named":              {approval.Rule{Need: 1}, nil, []string{"app"}, "1 of all approvers"},
		"the only repository":          {approval.Rule{Need: 1}, one, []string{"app"}, "1 of maintainers"},
		"one of two":                   {approval.Rule{Need: 2}, one, []string{"app", "web"}, "2 of maintainers in app; 2 of all approvers elsewhere"},
		"each its own":                 {approval.Rule{Need: 1}, two, []string{"app", "web"}, "1 of maintainers in app; 1 of leads in web"},
		"two alike":                    {approval.Rule{Need: 1}, map[string][]string{"app": {"a"}, "web": {"a"}}, []string{"app", "web"}, "1 of a"},
		"the rule's own groups":        {approval.Rule{Need: 1, From: []string{"core"}}, two, []string{"app", "web"}, "1 of core"},
		"a rule that passes by":        {approval.Rule{}, two, []string{"app", "web"}, "passes"},
		"a rule that denies":           {approval.Rule{Need: 1, Deny: true}, two, []string{"app", "web"}, "denied"},
		"of a repository that is gone": {approval.Rule{Need: 1}, two, []string{"docs"}, "1 of all approvers"},
	} {
		if got := handlers.Outcome(c.rule, c.approvers, c.repositories); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
