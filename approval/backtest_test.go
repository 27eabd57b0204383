package approval_test

import (
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
)

// Today's rules are tried on what was asked under yesterday's, and nothing is written.
func TestABacktestNamesWhatWouldHaveGoneOtherwise(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t,
		policy.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(0)},
		policy.RuleConfig{Name: "rest", When: "true"})})
	put := func(p orchestrator.Proposal) approval.Request {
		d := w.checked()
		w.must(w.g.Ask(w.ctx, d, p))
		return w.request(w.delegation(d.ID).ApprovalID)
	}
	docs, code := proposal("1"), proposal("2")
	docs.Review = &patch.Review{Files: []patch.File{{Path: "a.md", Status: patch.Added, Added: 1}}, Added: 1}
	code.Review = &patch.Review{Files: []patch.File{{Path: "a.go", Status: patch.Added, Added: 1}}, Added: 1}
	passed, asked := put(docs), put(code)
	next := compiled(t,
		policy.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(1), From: []string{"leads"}},
		policy.RuleConfig{Name: "code", When: `any(patch.files, .path endsWith '.go')`, Deny: true})
	b, err := w.g.Backtest(t.Context(), next, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Requests != 2 || b.Same != 0 || b.Effects[policy.Stricter] != 2 || len(b.Changes) != 2 {
		t.Fatalf("%+v", b)
	}
	by := map[string]approval.Change{}
	for _, c := range b.Changes {
		by[c.RequestID] = c
	}
	if c := by[passed.ID]; c.Was.Outcome() != "passes" || c.Would.Outcome() != "1 of leads" {
		t.Errorf("documents: %s → %s", c.Was.Outcome(), c.Would.Outcome())
	}
	if c := by[asked.ID]; c.Was.Outcome() != "1 of all approvers" || c.Would.Outcome() != "denied" {
		t.Errorf("code: %s → %s", c.Was.Outcome(), c.Would.Outcome())
	}
	if after := w.request(asked.ID); after.Version != asked.Version || after.Rule.Name != "rest" {
		t.Errorf("the backtest changed the request: %+v", after)
	}
	if b, err := w.g.Backtest(t.Context(), w.g.Config().Policy, time.Time{}); err != nil || b.Same != 2 {
		t.Errorf("the rules in force differ from themselves: %+v, %v", b, err)
	}
	if b, err := w.g.Backtest(t.Context(), next, w.clock.now().Add(time.Hour)); err != nil || b.Requests != 0 {
		t.Errorf("requests of before are tried: %+v, %v", b, err)
	}
}
