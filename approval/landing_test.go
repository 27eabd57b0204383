package approval_test

import (
	"slices"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

// A landing that waits for a person is shown where the yes was given.
func TestCardsSayWhyALandingWaits(t *testing.T) {
	ch := &watched{}
	w := newWorld(t, approval.Config{Channels: []approval.Channel{ch}})
	r := w.asked()
	w.decide(ballot(r, "bob", approval.Approve))
	w.must(w.g.Deliver(w.ctx, ch))
	if ch.view.Held != "" {
		t.Errorf("held: %q", ch.view.Held)
	}
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(w.ctx, r.DelegationID)
		if err != nil {
			return err
		}
		d.Work.Problem, d.Work.Declined = "The folder is dirty.", []string{"two.txt"}
		if err := tx.Move(w.ctx, d, orchestrator.Landing, d.Attempt); err != nil {
			return err
		}
		return tx.ShowLanding(w.ctx, d.ID)
	}))
	w.must(w.g.Deliver(w.ctx, ch))
	if ch.view.Held != "The folder is dirty." || !slices.Equal(ch.view.LeftOut, []string{"two.txt"}) {
		t.Errorf("held %q, left out %v", ch.view.Held, ch.view.LeftOut)
	}
}
