package store_test

import (
	"bytes"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// TestPostgresLosesAnAnswer: a step whose answer never comes is in the database once, and
// its caller learns that it is, also when others have written since.
func TestPostgresLosesAnAnswer(t *testing.T) {
	w, direct, s := newWay(t)
	task, d := newTask(t, s, 1)
	for i := range 8 {
		ends := 0
		err := s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
			ends++
			tx.OnRollback(func(maybe bool) {
				if maybe {
					t.Error("a step that its event proves is called unknown")
				}
			})
			d, err := tx.Delegation(t.Context(), d.ID)
			if err != nil {
				return err
			}
			tx.Task().Handoffs++
			d.Losses++
			if err := tx.Move(t.Context(), d, orchestrator.Queued, 0); err != nil {
				return err
			}
			if i%2 == 1 { // the step before has prepared the statement on this connection
				choose, _ := nth(1, cut)
				w.set(nil, choose)
			}
			return tx.Append(t.Context(), event.Event{Type: event.Progress, Actor: "kik"})
		})
		if err != nil || ends != 1 {
			t.Errorf("step %d ran %d times: %v", i, ends, err)
		}
		got, err := direct.Delegation(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		task, err := direct.Task(t.Context(), task.ID)
		if err != nil || task.Handoffs != i+1 || got.Losses != i+1 {
			t.Errorf("after step %d: %d hand-offs and %d losses, %v", i, task.Handoffs, got.Losses, err)
		}
	}
	if err := direct.VerifyTask(t.Context(), task.ID); err != nil {
		t.Error(err)
	}
}

// divided is what the server answers to a statement that found its task changed.
const divided = "C22012"

// TestAStepOfUnknownOutcomeIsNotRunAgain: the answer to a step is lost, the driver sends it
// again and learns that the task has changed, and then the server goes: nobody can tell
// whether the step is committed, and it is not run again.
func TestAStepOfUnknownOutcomeIsNotRunAgain(t *testing.T) {
	w, direct, s := newWay(t)
	task, _ := newTask(t, s, 1)
	calls, maybes, commits := 0, 0, 0
	lose := false
	step := func() error {
		return s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
			calls++
			tx.OnCommit(func() { commits++ })
			tx.OnRollback(func(maybe bool) {
				if maybe {
					maybes++
				}
				w.set(nil, nil) // the server is back
			})
			tx.Task().Handoffs++
			if lose {
				first, gone := true, false
				w.set(func([]byte) passage {
					if gone {
						return cut
					}
					return pass
				}, func(b []byte) passage {
					if first {
						first = false
						return cut
					}
					gone = gone || bytes.Contains(b, []byte(divided))
					return pass
				})
			}
			return tx.Append(t.Context(), event.Event{Type: event.Progress, Actor: "kik"})
		})
	}
	if err := step(); err != nil { // prepares the statement
		t.Fatal(err)
	}
	calls, commits, lose = 0, 0, true
	err := step()
	got, lost := direct.Task(t.Context(), task.ID)
	if lost != nil {
		t.Fatal(lost)
	}
	if calls != 1 || maybes != 1 || commits != 0 || orchestrator.CodeOf(err) != orchestrator.CodeUnavailable || got.Handoffs != 2 {
		t.Errorf("%d calls, %d times unknown, %d times committed, %d hand-offs: %v", calls, maybes, commits, got.Handoffs, err)
	}
}

// TestAWriteThatArrivesLateIsRefused: a connection breaks, and what was sent on it reaches
// the server after the step was found missing: it must not be there twice.
func TestAWriteThatArrivesLateIsRefused(t *testing.T) {
	w, direct, s := newWay(t)
	task, _ := newTask(t, s, 1)
	calls := 0
	var arm func()
	step := func() error {
		return s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
			calls++
			tx.Task().Handoffs++
			if arm != nil {
				arm()
				arm = nil
				tx.OnRollback(func(maybe bool) {
					if maybe {
						t.Error("a step that is not there is called unknown")
					}
					w.arrive()
					time.Sleep(300 * time.Millisecond)
				})
			}
			return tx.Append(t.Context(), event.Event{Type: event.Progress, Actor: "kik"})
		})
	}
	if err := step(); err != nil {
		t.Fatal(err)
	}
	sent := 0
	calls, arm = 0, func() {
		w.set(func(b []byte) passage {
			if sent++; sent == 1 {
				return late
			} else if sent <= 3 { // the driver tries again
				return cut
			}
			return pass
		}, nil)
	}
	if err := step(); err != nil || calls != 2 {
		t.Errorf("%d calls: %v", calls, err)
	}
	all, err := direct.Events(t.Context(), task.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	got, err := direct.Task(t.Context(), task.ID)
	if err != nil || got.Handoffs != 2 || len(all) != 3 {
		t.Errorf("%d hand-offs and %d events: %v", got.Handoffs, len(all), err)
	}
	if err := direct.VerifyTask(t.Context(), task.ID); err != nil {
		t.Error(err)
	}
}

// TestASlowConnectionHoldsUpItsStepAlone: nothing comes through on one connection, which
// prepares a statement, and the step of another task goes by another one.
func TestASlowConnectionHoldsUpItsStepAlone(t *testing.T) {
	w, _, s := newWay(t)
	a, _ := newTask(t, s, 1)
	b, _ := newTask(t, s, 1)
	step := func(id string, events int) error {
		return s.InTask(t.Context(), id, func(tx orchestrator.Tx) error {
			for range events {
				if err := tx.Append(t.Context(), event.Event{Type: event.Progress, Actor: "kik"}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := step(b.ID, 1); err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	choose, seen := nth(1, hold)
	w.set(func(b []byte) passage {
		how := choose(b)
		if *seen == 1 {
			close(held)
		}
		return how
	}, nil)
	slow, other := make(chan error, 1), make(chan error, 1)
	go func() { slow <- step(a.ID, 5) }() // a statement that nobody has prepared
	<-held
	go func() { other <- step(b.ID, 1) }()
	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case err := <-slow:
		t.Errorf("the slow step was not held up: %v", err)
	case <-time.After(10 * time.Second):
		t.Error("the step of another task waits with it")
	}
	w.arrive()
	if err := <-slow; err != nil {
		t.Error(err)
	}
}
