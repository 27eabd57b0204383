package cli

import (
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/web/wire"
)

// Where nobody who has not done so can say yes, every face says that and what to do.
func TestARequestThatNobodyCanSatisfy(t *testing.T) {
	t.Parallel()
	r := wire.Request{State: "pending"}
	r.Needs.Have, r.Needs.Count, r.Needs.Problem = 1, 2, "This needs 2 approvers, but only ann can."
	const want = "nobody else can say yes: add an approver or change the rule"
	if got := outcome(r, "approved"); got != "approved, 1 of 2 yes; "+want {
		t.Errorf("the yes says %q", got)
	}
	if got := (view{request: &r}).turnNames(); got != want {
		t.Errorf("wait says %q", got)
	}
	if got := needed("needs", r); got != want {
		t.Errorf("approvals says %q", got)
	}
	r.Needs.Missing = []string{"bob"}
	if got := needed("needs", r); got != "needs bob" {
		t.Errorf("with bob it says %q", got)
	}
}

// What failed in the way that its state names says so once.
func TestTheTreeSaysCancelledOnce(t *testing.T) {
	t.Parallel()
	p := planter{}
	d := wire.Delegation{State: "cancelled", Error: &agent.Failure{Code: "cancelled", Message: "ann cancelled this"}}
	if got := p.outcome(d); got != "cancelled: ann cancelled this" {
		t.Errorf("it says %q", got)
	}
	d.State, d.Error.Code = "failed", "exit"
	if got := p.outcome(d); got != "failed: exit: ann cancelled this" {
		t.Errorf("it says %q", got)
	}
}
