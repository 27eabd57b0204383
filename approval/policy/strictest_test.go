package policy_test

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator/patch"
)

// Of several agents the one whose patch it is goes first, and the strictest rule counts.
func TestOfSeveralAgentsTheStrictestRuleCounts(t *testing.T) {
	of := func(agent string) string { return `agent == "` + agent + `"` }
	pass := policy.RuleConfig{Name: "pass", When: of("coder"), Need: need(0)}
	one := policy.RuleConfig{Name: "one", When: of("one")}
	named := policy.RuleConfig{Name: "named", When: of("named"), From: []string{"leads"}}
	two := policy.RuleConfig{Name: "two", When: of("two"), Need: need(2)}
	never := policy.RuleConfig{Name: "never", When: of("never"), Deny: true}
	p := compile(t, pass, one, named, two, never)
	for agents, want := range map[string]string{
		"coder":                     "pass: passes",
		"coder one":                 "one: 1 of all approvers",
		"coder stranger":            "default: 1 of all approvers", // no rule knows it
		"coder one named":           "named: 1 of leads",
		"coder named one":           "named: 1 of leads",
		"coder named two":           "two: 2 of all approvers",
		"coder two named one":       "two: 2 of all approvers",
		"coder never two":           "never: denied",
		"coder one never":           "never: denied",
		"one stranger coder":        "one: 1 of all approvers", // alike: its own
		"stranger one":              "default: 1 of all approvers",
		"two coder one named":       "two: 2 of all approvers",
		"never two named one coder": "never: denied",
	} {
		f := docsChange()
		f.Agents = strings.Fields(agents)
		f.Agent = f.Agents[0]
		r := p.Strictest(f)
		if got := r.Rule.Name + ": " + r.Rule.Outcome(); got != want || r.Deny != (r.Rule.Name == "never") {
			t.Errorf("%s: %s (denied: %v), want %s", agents, got, r.Deny, want)
		}
		noted := slices.ContainsFunc(r.Notes, func(n patch.Note) bool {
			return n.Code == policy.NoteOtherAgent && strings.Contains(n.Text, "stricter than that for "+f.Agent)
		})
		if own := p.Rule(f).Rule.Name == r.Rule.Name; noted == own {
			t.Errorf("%s: a note that another agent's rule holds: %v", agents, noted)
		}
	}
}

// A rule on trial that would be stricter for another agent is told, and decides nothing.
func TestARuleOnTrialForAnotherAgentIsTold(t *testing.T) {
	p := compile(t,
		policy.RuleConfig{Name: "trial", When: `agent == "deps"`, Need: need(2), Shadow: true},
		policy.RuleConfig{Name: "pass", When: `agent in ["coder", "deps"]`, Need: need(0)})
	f := docsChange()
	f.Agents = []string{"coder", "deps"}
	r := p.Strictest(f)
	if !r.Pass() || r.Shadow == nil || r.Shadow.Name != "trial" || r.Shadow.Need != 2 {
		t.Errorf("%+v, on trial %+v", r, r.Shadow)
	}
	f.Agents = f.Agents[:1]
	if r := p.Strictest(f); r.Shadow != nil {
		t.Errorf("coder alone: %+v", r.Shadow)
	}
}
