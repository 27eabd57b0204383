package approval_test

import (
	"slices"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// A rule that passes a change decides it. On a node whose rules are not those that were
// taken last, people decide in its place; on one that has them the rule does.
func TestANodeWithOlderRulesPassesNothing(t *testing.T) {
	policy, problems := policy.CompileRules([]policy.RuleConfig{{Name: "docs", When: "true", Need: new(int)}}, groups)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for same, want := range map[bool]approval.State{false: approval.Pending, true: approval.Approved} {
		w := newWorld(t, approval.Config{Policy: policy, OtherRules: func([]event.Configured) []string {
			if same {
				return nil
			}
			return []string{"repositories.app.checks"}
		}})
		_, err := w.db.RecordConfiguration(w.ctx, event.Taken{Actor: "ann", How: "reload", Node: "other"}, []event.Configured{{Key: "repositories.app.checks", Value: "go test", Rule: true}})
		w.must(err)
		r := w.asked()
		noted := slices.ContainsFunc(r.Revision.Notes, func(n patch.Note) bool { return n.Code == "rule_not_applied" })
		if r.State != want || noted == same || !same && r.Rule.Need != 1 {
			t.Errorf("the same rules %t: %s by %+v, notes %v", same, r.State, r.Rule, r.Revision.Notes)
		}
	}
}
