package approval_test

import (
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator/patch"
)

// Settings make what is only noted, or what two people decide, a matter for the page;
// then no rule lets it pass by itself either.
func TestSettingsMakeMoreRequestsCareful(t *testing.T) {
	p := proposal("1")
	p.Notes = append(p.Notes, patch.Note{Code: "no_checks", Text: "No checks are configured for app."})
	ask := func(c approval.Config) approval.Request {
		w := newWorld(t, c)
		d := w.checked()
		w.must(w.g.Ask(w.ctx, d, p))
		return w.request(w.delegation(d.ID).ApprovalID)
	}
	auto := compiled(t, policy.RuleConfig{Name: "auto", When: "true", Need: need(0)})
	if r := ask(approval.Config{Policy: auto}); r.State != approval.Approved {
		t.Fatalf("without the setting the rule lets nothing pass: %s", r.State)
	}
	r := ask(approval.Config{Policy: auto, Careful: []string{approval.CarefulNoChecks}})
	if risk := approval.RiskOf(r); r.State != approval.Pending || risk.Level != approval.Careful || risk.Reasons[0] != "no_checks" {
		t.Errorf("no checks: %s, %+v", r.State, risk)
	}
	two := compiled(t, policy.RuleConfig{Name: "two", When: "true", Need: need(2), From: []string{"maintainers"}})
	if risk := approval.RiskOf(ask(approval.Config{Policy: two})); risk.Level != approval.Plain {
		t.Errorf("two people make it careful without the setting: %+v", risk)
	}
	if risk := approval.RiskOf(ask(approval.Config{Policy: two, Careful: []string{approval.CarefulNeedTwo}})); risk.Level != approval.Careful || risk.Reasons[0] != "need_two" {
		t.Errorf("two people: %+v", risk)
	}
}
