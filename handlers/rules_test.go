package handlers_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/handlers"
	"gatehouse/handlers/settings"
)

// A rule that names no groups is shown with those whom its repository asks, as cards show it.
func TestARuleIsShownWithTheApproversOfItsRepositories(t *testing.T) {
	one, two := map[string][]string{"app": {"maintainers"}}, map[string][]string{"app": {"maintainers"}, "web": {"leads"}}
	for name, c := range map[string]struct {
		rule         policy.Rule
		approvers    map[string][]string
		repositories []string
		want         string
	}{
		"nobody is named":              {policy.Rule{Need: 1}, nil, []string{"app"}, "1 of all approvers"},
		"the only repository":          {policy.Rule{Need: 1}, one, []string{"app"}, "1 of maintainers"},
		"one of two":                   {policy.Rule{Need: 2}, one, []string{"app", "web"}, "2 of maintainers in app; 2 of all approvers elsewhere"},
		"each its own":                 {policy.Rule{Need: 1}, two, []string{"app", "web"}, "1 of maintainers in app; 1 of leads in web"},
		"two alike":                    {policy.Rule{Need: 1}, map[string][]string{"app": {"a"}, "web": {"a"}}, []string{"app", "web"}, "1 of a"},
		"the rule's own groups":        {policy.Rule{Need: 1, From: []string{"core"}}, two, []string{"app", "web"}, "1 of core"},
		"a rule that passes by":        {policy.Rule{}, two, []string{"app", "web"}, "passes"},
		"a rule that denies":           {policy.Rule{Need: 1, Deny: true}, two, []string{"app", "web"}, "denied"},
		"of a repository that is gone": {policy.Rule{Need: 1}, two, []string{"docs"}, "1 of all approvers"},
	} {
		if got := settings.Outcome(c.rule, c.approvers, c.repositories); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// People paste what they have; a mistake says where it is.
func TestRulesAreReadAsTheyArePasted(t *testing.T) {
	const list = "- {name: docs, when: \"true\", need: 0, expires: 2h}\n- {name: rest, when: \"true\", need: 1}\n"
	indented := "  " + strings.ReplaceAll(strings.TrimSuffix(list, "\n"), "\n", "\n  ")
	for name, text := range map[string]string{"the list": list, "rules": "rules:\n" + list, "the section": "approval:\n  four_eyes: true\n  rules:\n  " + strings.ReplaceAll(indented, "\n", "\n  "),
		"a file": "server: {listen: x}\napproval:\n  rules:\n" + indented} {
		rules, err := handlers.ParseRules(text)
		if err != nil || len(rules) != 2 || rules[0].Expires != 2*time.Hour || *rules[1].Need != 1 {
			t.Errorf("%s: %+v %v", name, rules, err)
		}
	}
	for text, want := range map[string]string{
		"":                                      "there are no rules here",
		"docs":                                  "1:1: this is no list",
		"approval:\n  rules: yes":               "2:10: this is no list",
		"- docs":                                "1:3: a rule has keys",
		"- name: a\n  wen: \"true\"":            "2:3: a rule has no key \"wen\"",
		"- name: a\n  need: many":               "2:1: cannot unmarshal",
		"- {name: a, expires: soon}":            "1:22: rule \"a\": expires",
		"- {name: a":                            "1:1: did not find",
		"approval:\n  rules:\n    - {deny: 7}":  "3:1: cannot unmarshal",
		"- {name: &need expires, *need : soon}": "1:25: a rule has no key",
	} {
		if _, err := handlers.ParseRules(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", text, err, want)
		}
	}
}
