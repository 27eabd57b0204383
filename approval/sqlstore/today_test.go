package sqlstore_test

import (
	"errors"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/orchestrator/store"
)

var todayTests = map[string]func(*Suite){
	"what landed and was rejected is counted": outcomes,
	"what went wrong is listed":               wentWrong,
	"live tasks are listed":                   liveTasks,
	"nodes and seals are known":               housekeeping,
}

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
		{approval.Landed, now.AddDate(-1, 0, 0), now, now, true}, // asked a year ago
	} {
		id := orchestrator.NewID(orchestrator.RequestPrefix, c.asked)
		task := orchestrator.Task{ID: root.TaskID, Agent: "coder", Text: "x"}
		d := s.delegation(task, func(d *orchestrator.Delegation) {
			d.State, d.EndedAt, d.ApprovalID = orchestrator.Completed, &c.landed, id
			if c.child {
				d.ParentID, d.HopKey = root.ID, d.ID
			}
		})
		s.request(d, func(r *approval.Request) {
			r.ID = id
			r.State, r.Revision.State, r.CreatedAt, r.DecidedAt = c.state, c.state, c.asked, &c.decided
		})
	}
	got, err := s.Store.Today(s.ctx, midnight)
	if err != nil || got.Landed != 5 || got.Rejected != 1 {
		s.Errorf("%d landed and %d rejected today, %v; want 5 and 1", got.Landed, got.Rejected, err)
	}
}

// wentWrong: ends that nobody wanted count by when they came, only those of whole tasks,
// and a person's no is none;
// refusals come with what the task asks for.
func wentWrong(s *Suite) {
	now := s.Clock.Now()
	midnight := now.Truncate(24 * time.Hour)
	task := s.task("one")
	root := s.delegation(task)
	ended := func(state orchestrator.State, at time.Time, child bool) string {
		return s.delegation(orchestrator.Task{ID: task.ID, Agent: "coder", Text: "x"}, func(d *orchestrator.Delegation) {
			d.State, d.EndedAt = state, &at
			if child {
				d.ParentID, d.HopKey = root.ID, d.ID
			}
		}).ID
	}
	first := ended(orchestrator.Failed, midnight, false)
	second := ended(orchestrator.Expired, now, false)
	ended(orchestrator.Failed, midnight.Add(-time.Second), false)
	ended(orchestrator.Failed, now, true)
	ended(orchestrator.Completed, now, false)
	ended(orchestrator.Rejected, now, false)
	found, n, err := s.Store.Wrong(s.ctx, midnight, 8)
	if err != nil || n != 2 || len(found) != 2 || found[0].ID != second || found[1].ID != first {
		s.Errorf("went wrong: %d, %v, %v", n, found, err)
	}
	s.in(task.ID, func(tx orchestrator.Tx) error {
		return errors.Join(tx.Append(s.ctx, event.Event{Type: event.DelegationRefused, DelegationID: root.ID, Actor: "kik", Data: event.Data(map[string]any{"to": "coder", "code": "cycle", "message": "no"})}),
			tx.Append(s.ctx, event.Event{Type: event.DelegationRefused, DelegationID: root.ID, Actor: "kik", Data: []byte(`{"code": 7}`)}))
	})
	refusals, n, err := s.Store.Refusals(s.ctx, midnight, 8)
	if err != nil || n != 2 || len(refusals) != 2 {
		s.Fatalf("refusals: %d, %v, %v", n, refusals, err)
	}
	slices.SortFunc(refusals, func(a, b insight.Refusal) int { return int(a.N - b.N) })
	if r := refusals[0]; r.Code != "cycle" || r.From != "kik" || r.To != "coder" || r.Task != task.Text || r.DelegationID != root.ID || r.At.IsZero() || refusals[1].Code != "" {
		s.Errorf("refusals: %+v", refusals)
	}
	if _, n, err = s.Store.Refusals(s.ctx, now.Add(time.Hour), 8); n != 0 || err != nil {
		s.Errorf("later: %d, %v", n, err)
	}
}

// liveTasks: whole tasks only, those that work before those that wait, newest first.
func liveTasks(s *Suite) {
	task := s.task("one")
	made := map[string]string{}
	for _, c := range []struct {
		name  string
		state orchestrator.State
		child bool
	}{{"old", orchestrator.Running, false}, {"parked", orchestrator.AwaitingApproval, false}, {"new", orchestrator.Running, false}, {"child", orchestrator.Running, true}, {"done", orchestrator.Completed, false}} {
		d := s.delegation(orchestrator.Task{ID: task.ID, Agent: "coder", Text: c.name}, func(d *orchestrator.Delegation) {
			d.State = c.state
			if c.child {
				d.ParentID, d.HopKey = made["old"], d.ID
			}
		})
		made[c.name] = d.ID
		s.Clock.Add(time.Second)
	}
	for limit, want := range map[int]string{8: "new old parked", 2: "new old", 0: ""} {
		found, counts, err := s.Store.LiveTasks(s.ctx, limit, orchestrator.Running, orchestrator.AwaitingApproval)
		var names []string
		for _, d := range found {
			names = append(names, d.Text)
		}
		if got := strings.Join(names, " "); err != nil || got != want || counts[orchestrator.Running] != 2 || counts[orchestrator.AwaitingApproval] != 1 {
			s.Errorf("at most %d: %q, %v, %v; want %q", limit, got, counts, err, want)
		}
	}
}

// housekeeping: a node is known until it says that it ended; an event waits for its seal.
func housekeeping(s *Suite) {
	now := s.Clock.Now()
	last, _, err := s.Store.Sealed(s.ctx)
	if err != nil || !last.IsZero() {
		s.Errorf("before the first seal: %v, %v", last, err)
	}
	s.run(s.Store)
	s.task("one")
	s.eventually("the event has a position", func() bool {
		pos, err := s.Store.LastPosition(s.ctx)
		s.must(err)
		return pos > 0
	})
	if _, waits, err := s.Store.Sealed(s.ctx); err != nil || waits.IsZero() {
		s.Errorf("an event waits since %v, %v", waits, err)
	}
	if _, err := s.Store.Seal(s.ctx, func([]byte) ([]byte, string) { return []byte("s"), "k" }); err != nil {
		s.Fatal(err)
	}
	if last, waits, err := s.Store.Sealed(s.ctx); err != nil || last.IsZero() || !waits.IsZero() {
		s.Errorf("after the seal: %v, %v, %v", last, waits, err)
	}
	for _, name := range []string{"one", "two"} {
		if err := s.Store.SaveNode(s.ctx, store.Node{Name: name}); err != nil {
			s.Fatal(err)
		}
	}
	if err := s.Store.DropNode(s.ctx, "one", now.Add(-time.Hour)); err != nil {
		s.Fatal(err)
	}
	if nodes, err := s.Store.Nodes(s.ctx, now.Add(-time.Minute)); err != nil || len(nodes) != 1 || nodes[0].Name != "two" {
		s.Errorf("nodes: %v, %v", nodes, err)
	}
}
