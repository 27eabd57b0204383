package web_test

import (
	"regexp"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// TestTodayCountsWhatTheStepsOfAWorkflowLanded: the root of such a task has landed
// nothing itself.
func TestTodayCountsWhatTheStepsOfAWorkflowLanded(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	for _, state := range []approval.State{approval.Landed, approval.Landed, approval.Rejected, approval.Pending} {
		now := time.Now()
		r := h.request(dora, func(r *approval.Request) { r.State, r.Revision.State, r.DecidedAt = state, state, &now })
		h.must(h.store.Gateway().InTask(h.ctx, r.TaskID, func(tx approval.Tx) error {
			d, err := tx.Delegation(h.ctx, r.DelegationID)
			if err != nil {
				return err
			}
			from := d.State
			d.State, d.EndedAt = orchestrator.Completed, &now
			return tx.Move(h.ctx, d, from, d.Attempt)
		}))
	}
	page := h.signIn(dora).get("/").body
	for name, want := range map[string]string{"tasks": "4", "landed": "2", "rejected": "1"} {
		m := regexp.MustCompile(`<dt>` + name + `</dt><dd><a[^>]*>([^<]*)</a>`).FindStringSubmatch(page)
		if m == nil || m[1] != want {
			t.Errorf("%s today: %q, want %s", name, m, want)
		}
	}
}
