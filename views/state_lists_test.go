package views

import (
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
)

// Every state that a delegation or a request may have has its word, icon and colour.
func TestEveryStateHasItsLook(t *testing.T) {
	var all []string
	for _, s := range orchestrator.States() {
		all = append(all, string(s))
	}
	for _, s := range []approval.State{approval.Pending, approval.Approved, approval.Rejected, approval.ChangesRequested, approval.Expired, approval.Superseded,
		approval.Stale, approval.Landed, approval.Reverted, approval.Failed, approval.Cancelled} {
		all = append(all, string(s))
	}
	for _, s := range all {
		if !badge.Known(s) {
			t.Errorf("%s has no look: pages would show it grey and without its icon", s)
		}
	}
}
