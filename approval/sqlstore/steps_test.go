package sqlstore_test

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

var stepTests = map[string]func(*Suite){
	"two nodes take turns at a task":                     stepsOfTwoNodes,
	"two nodes write a task at once":                     stepsAtOnce,
	"what a node remembers is not what it writes on":     stepsOnOldMemory,
	"an error from old memory is looked at again":        errorsOfOldMemory,
	"a move leaves a lease alone that was renewed":       stepsKeepRenewedLeases,
	"what ran out in memory only is not taken":           stepsOnExpiredLeases,
	"a lease that ended in the database only is taken":   stepsOnReleasedLeases,
	"one step that fails takes no other one with it":     stepsFailAlone,
	"rows that a step made are found by its own reads":   stepsSeeTheirOwn,
	"a step that moves one row more than once ends well": stepsMoveTwice,
}

// proven reads a task's events and finds them numbered and chained, to the task's head.
func (s *Suite) proven(taskID string) []event.Event {
	s.Helper()
	all, err := s.Store.Events(s.ctx, taskID, 0, 10_000)
	s.must(err)
	before := ""
	for i, e := range all {
		if e.N != int64(i+1) || e.PrevHash != before {
			s.Fatalf("event %d has the number %d and follows %q, not %q", i+1, e.N, e.PrevHash, before)
		}
		before = e.Hash
	}
	task, err := s.Store.Task(s.ctx, taskID)
	s.must(err)
	if task.LastN != int64(len(all)) || task.LastHash != before {
		s.Fatalf("the task ends at %d %q, its events at %d %q", task.LastN, task.LastHash, len(all), before)
	}
	return all
}

// count raises the task's hand-offs and says so.
func (s *Suite) count(st *sqlstore.Store, taskID string) error {
	return st.InTask(s.ctx, taskID, func(tx orchestrator.Tx) error {
		tx.Task().Handoffs++
		data := event.Data(map[string]any{"n": tx.Task().Handoffs})
		return tx.Append(s.ctx, event.Event{Type: event.Progress, Data: data})
	})
}

func stepsOfTwoNodes(s *Suite) {
	task := s.task("one")
	had := len(s.proven(task.ID))
	two := s.open("two")
	for i := range 6 {
		s.must(s.count([]*sqlstore.Store{s.Store, two}[i/2%2], task.ID))
	}
	got, err := two.Task(s.ctx, task.ID)
	s.must(err)
	if got.Handoffs != 6 || len(s.proven(task.ID)) != had+6 {
		s.Errorf("after six steps: %+v", got)
	}
}

func stepsAtOnce(s *Suite) {
	task := s.task("one")
	nodes := []*sqlstore.Store{s.Store, s.open("two")}
	const each = 20
	var wg sync.WaitGroup
	errs := make(chan error, 4*each)
	for i := range 4 {
		wg.Go(func() {
			for range each {
				errs <- s.count(nodes[i%2], task.ID)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		s.must(err)
	}
	got, err := s.Store.Task(s.ctx, task.ID)
	s.must(err)
	s.proven(task.ID)
	if got.Handoffs != 4*each {
		s.Errorf("%d steps counted to %d", 4*each, got.Handoffs)
	}
}

// claim moves a delegation on as a node does.
func (s *Suite) claim(st *sqlstore.Store, node string, d *orchestrator.Delegation) error {
	return st.InTask(s.ctx, d.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, d.ID)
		if err != nil {
			return err
		}
		if d.State != orchestrator.Queued {
			return orchestrator.ErrLost
		}
		d.State, d.Holder, d.LeaseUntil = orchestrator.Running, node, tx.Now().Add(time.Minute)
		d.Attempt++
		return tx.Move(s.ctx, d, orchestrator.Queued, d.Attempt-1)
	})
}

func stepsOnOldMemory(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	two := s.open("two")
	s.must(s.claim(two, "two", d))
	s.is(s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
		mine := *d
		mine.State, mine.Holder = orchestrator.Running, "one"
		mine.Attempt++
		return tx.Move(s.ctx, &mine, orchestrator.Queued, d.Attempt)
	}), orchestrator.ErrLost)
	got, err := s.Store.Delegation(s.ctx, d.ID)
	s.must(err)
	if got.Holder != "two" {
		s.Errorf("it is held by %q", got.Holder)
	}
}

func errorsOfOldMemory(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	two := s.open("two")
	s.must(s.claim(two, "two", d))
	var saw []orchestrator.State
	refused := errors.New("refused")
	s.is(s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, d.ID)
		s.must(err)
		saw = append(saw, d.State)
		return refused
	}), refused)
	if last := saw[len(saw)-1]; last != orchestrator.Running {
		s.Errorf("the step ended on what it saw as %v", saw)
	}
}

func stepsKeepRenewedLeases(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	s.must(s.claim(s.Store, "one", d))
	until := s.Clock.Now().Add(time.Hour)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, d.ID)
		s.must(err)
		held := []orchestrator.Ref{{TaskID: task.ID, DelegationID: d.ID, Attempt: d.Attempt}}
		lost, err := s.Store.Renew(s.ctx, "one", held, until)
		if err != nil || len(lost) > 0 {
			s.Errorf("renewed: %v %v", lost, err)
		}
		d.OpenChildren++
		return tx.Move(s.ctx, d, orchestrator.Running, d.Attempt)
	})
	got, err := s.Store.Delegation(s.ctx, d.ID)
	s.must(err)
	if !got.LeaseUntil.Equal(until) || got.OpenChildren != 1 {
		s.Errorf("the lease ends at %v with %d children", got.LeaseUntil, got.OpenChildren)
	}
}

func stepsOnExpiredLeases(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	s.must(s.claim(s.Store, "one", d))
	s.Clock.Add(2 * time.Minute)
	// Another program of the same name renews; this one remembers the old lease.
	again := s.open("one")
	until := s.Clock.Now().Add(time.Hour)
	_, err := again.Renew(s.ctx, "one", []orchestrator.Ref{{TaskID: task.ID, DelegationID: d.ID, Attempt: 1}}, until)
	s.must(err)
	s.is(s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, d.ID)
		s.must(err)
		if d.LeaseUntil.After(tx.Now()) {
			return orchestrator.ErrLost
		}
		d.Attempt++
		d.LeaseUntil = tx.Now().Add(time.Minute)
		return tx.Move(s.ctx, d, orchestrator.Running, d.Attempt-1)
	}), orchestrator.ErrLost)
}

func stepsOnReleasedLeases(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	s.must(s.claim(s.Store, "one", d))
	// Another program of the same name ends; this one remembers the lease that it had.
	s.must(s.open("one").Release(s.ctx, "one", s.Clock.Now()))
	s.Clock.Add(time.Second)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, d.ID)
		s.must(err)
		if d.LeaseUntil.After(tx.Now()) {
			return orchestrator.ErrLost
		}
		d.Attempt++
		d.LeaseUntil = tx.Now().Add(time.Minute)
		return tx.Move(s.ctx, d, orchestrator.Running, d.Attempt-1)
	})
}

func stepsFailAlone(s *Suite) {
	const many = 24
	var all []orchestrator.Task
	for i := range many {
		task := s.task(fmt.Sprint("task ", i))
		s.delegation(task)
		all = append(all, task)
	}
	taken := s.delegation(all[0]).ID
	var wg sync.WaitGroup
	errs := make([]error, many)
	for i, task := range all {
		wg.Go(func() {
			errs[i] = s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
				tx.Task().Handoffs++
				if i%3 == 1 { // its id belongs to another task
					d := orchestrator.Delegation{
						ID: taken, To: "kik", Text: "again", State: orchestrator.Queued, ReadyAt: tx.Now(),
					}
					if err := tx.Insert(s.ctx, &d); err != nil {
						return err
					}
				}
				return tx.Append(s.ctx, event.Event{Type: event.Progress, Data: event.Data(map[string]any{"n": i})})
			})
		})
	}
	wg.Wait()
	for i, task := range all {
		got, err := s.Store.Task(s.ctx, task.ID)
		s.must(err)
		s.proven(task.ID)
		if failed := i%3 == 1; (errs[i] != nil) != failed || got.Handoffs != map[bool]int{true: 0, false: 1}[failed] {
			s.Errorf("step %d: %v, and the task has %d hand-offs", i, errs[i], got.Handoffs)
		}
	}
}

func stepsSeeTheirOwn(s *Suite) {
	task := s.task("one")
	root := s.delegation(task)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		child := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, tx.Now()),
			ParentID: root.ID, From: "kik", To: "lea", Text: "below",
			HopKey: "lea 1", State: orchestrator.Queued, ReadyAt: tx.Now()}
		s.must(tx.Insert(s.ctx, &child))
		again := child
		again.ID = orchestrator.NewID(orchestrator.DelegationPrefix, tx.Now())
		s.is(tx.Insert(s.ctx, &again), orchestrator.ErrExists)
		found, err := tx.Child(s.ctx, root.ID, 0, "lea 1")
		if err != nil || found.ID != child.ID {
			s.Errorf("the child by its key: %v %v", found, err)
		}
		for name, read := range map[string]func() ([]*orchestrator.Delegation, error){
			"children": func() ([]*orchestrator.Delegation, error) { return tx.Children(s.ctx, root.ID) },
			"live":     func() ([]*orchestrator.Delegation, error) { return tx.Live(s.ctx, root.ID) },
			"recent":   func() ([]*orchestrator.Delegation, error) { return tx.Recent(s.ctx, 5) },
			"tree": func() ([]*orchestrator.Delegation, error) {
				all, err := tx.Tree(s.ctx)
				return all[1:], err
			},
		} {
			if got, err := read(); err != nil || len(got) != 1 || got[0].ID != child.ID {
				s.Errorf("%s: %v %v", name, got, err)
			}
		}
		return nil
	})
}

func stepsMoveTwice(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, d.ID)
		s.must(err)
		d.State = orchestrator.Running
		d.Attempt++
		s.must(tx.Move(s.ctx, d, orchestrator.Queued, 0))
		s.is(tx.Move(s.ctx, d, orchestrator.Queued, 0), orchestrator.ErrLost)
		if d, err = tx.Delegation(s.ctx, d.ID); err != nil || d.State != orchestrator.Running {
			s.Errorf("after a lost move: %+v %v", d, err)
		}
		d.State = orchestrator.Waiting
		return tx.Move(s.ctx, d, orchestrator.Running, 1)
	})
	got, err := s.Store.Delegation(s.ctx, d.ID)
	s.must(err)
	if got.State != orchestrator.Waiting || got.Attempt != 1 {
		s.Errorf("%+v", got)
	}
}
