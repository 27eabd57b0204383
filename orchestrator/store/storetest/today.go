package storetest

import (
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

// outcomes: what landed counts by its landing, and a no by its own time; roots and the
// delegations below them count alike.
func outcomes(s *Suite) {
	now := s.Clock.Now()
	midnight := now.Truncate(24 * time.Hour)
	yesterday := midnight.Add(-time.Hour)
	root := s.delegation(s.task("one"))
	for _, c := range []struct {
		state                  approval.State
		asked, decided, landed time.Time
		child                  bool
	}{
		{approval.Landed, yesterday, yesterday, now, true},      // held up over night
		{approval.Landed, now, now, now, false},                 //
		{approval.Reverted, now, now, now, true},                // it did land
		{approval.Landed, yesterday, yesterday, midnight, true}, // the first moment of the day
		{approval.Landed, yesterday, yesterday, yesterday, true},
		{approval.Rejected, yesterday, now, now, true},
		{approval.Rejected, yesterday, yesterday, now, true}, // run again after the no, and done today
		{approval.Pending, now, now, now, true},
		{approval.Expired, now, now, now, true},
		{approval.Landed, now.AddDate(-1, 0, 0), now, now, true}, // older than a question can be
	} {
		task := orchestrator.Task{ID: root.TaskID, Agent: "coder", Text: "x"}
		d := s.delegation(task, func(d *orchestrator.Delegation) {
			d.State, d.EndedAt = orchestrator.Completed, &c.landed
			if c.child {
				d.ParentID, d.HopKey = root.ID, d.ID
			}
		})
		s.request(d, func(r *approval.Request) {
			r.ID = orchestrator.NewID(orchestrator.RequestPrefix, c.asked)
			r.State, r.Revision.State, r.CreatedAt, r.DecidedAt = c.state, c.state, c.asked, &c.decided
		})
	}
	landed, rejected, err := s.Store.Outcomes(s.ctx, midnight)
	if err != nil || landed != 4 || rejected != 1 {
		s.Errorf("%d landed and %d rejected today, %v; want 4 and 1", landed, rejected, err)
	}
}
