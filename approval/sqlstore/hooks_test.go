package sqlstore_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

var hookTests = map[string]func(*Suite){
	"what waits for the commit runs after it":       hooksAfterCommit,
	"an undone transaction tells that it is":        hooksAfterRollback,
	"a try that the database undid runs no hook":    hooksOfUndoneTries,
	"a task that exists already runs no hook":       hooksOfNoTask,
	"a caller who goes away is told one thing":      hooksOfNobody,
	"a transaction that panics tells that it is so": hooksAfterPanic,
}

// said notes in which order hooks run.
type said []string

func (w *said) hook(word string) func() { return func() { *w = append(*w, word) } }
func (w *said) undone(word string) func(bool) {
	return func(maybe bool) {
		if maybe {
			word += "?"
		}
		*w = append(*w, word)
	}
}

func (s *Suite) said(got said, want ...string) {
	s.Helper()
	if !reflect.DeepEqual([]string(got), want) {
		s.Errorf("the hooks that ran are %q, want %q", []string(got), want)
	}
}

func hooksAfterCommit(s *Suite) {
	task := s.task("one")
	var w said
	s.in(task.ID, func(tx orchestrator.Tx) error {
		tx.OnRollback(w.undone("undone"))
		tx.OnCommit(w.hook("first"))
		tx.OnCommit(func() { // sees what is committed, and may write
			if got, err := s.Store.Task(s.ctx, task.ID); err != nil || got.Handoffs != 7 {
				s.Errorf("after the commit the task is %+v %v", got, err)
			}
			s.in(task.ID, func(tx orchestrator.Tx) error {
				tx.OnCommit(w.hook("inner"))
				return nil
			})
		})
		tx.OnCommit(w.hook("last"))
		tx.Task().Handoffs = 7
		s.said(w)
		return nil
	})
	s.said(w, "first", "inner", "last")
}

func hooksAfterRollback(s *Suite) {
	task := s.task("one")
	broken := errors.New("broken")
	var w said
	s.is(s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
		tx.OnCommit(w.hook("committed"))
		tx.OnRollback(w.undone("first"))
		tx.OnRollback(func(bool) { // the transaction is over
			s.in(task.ID, func(tx orchestrator.Tx) error { return nil })
			w = append(w, "second")
		})
		return broken
	}), broken)
	s.said(w, "second", "first")
	w = nil
	s.is(s.Store.InTask(s.ctx, "tsk_none", func(tx orchestrator.Tx) error {
		tx.OnCommit(w.hook("committed"))
		return nil
	}), orchestrator.ErrNotFound)
	s.said(w)
}

// Whether the commit was still asked for is a matter of moments. Either way one hook runs.
func hooksOfNobody(s *Suite) {
	task := s.task("one")
	for range 20 {
		ctx, cancel := context.WithCancel(s.ctx)
		ended := 0
		err := s.Store.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
			tx.OnCommit(func() { s.Error("it is committed, and its caller had gone") })
			tx.OnRollback(func(bool) { ended++ })
			cancel()
			return nil
		})
		if s.is(err, context.Canceled); ended != 1 {
			s.Errorf("%d hooks ran", ended)
		}
	}
}

func hooksAfterPanic(s *Suite) {
	task := s.task("one")
	var w said
	func() {
		defer func() { _ = recover() }()
		s.in(task.ID, func(tx orchestrator.Tx) error {
			tx.OnCommit(w.hook("committed"))
			tx.OnRollback(w.undone("undone"))
			panic("a defect")
		})
	}()
	s.said(w, "undone")
}

func hooksOfNoTask(s *Suite) {
	first := orchestrator.Task{ID: "tsk_1", RootID: "dlg_1", Agent: "kik", Text: "x", Key: "k", RequesterID: "usr_1", CreatedAt: s.Clock.Now()}
	second := first
	second.ID = "tsk_2"
	var w said
	for _, t := range []orchestrator.Task{first, second} {
		_, _, err := s.Store.NewTask(s.ctx, t, func(tx orchestrator.Tx) error {
			tx.OnCommit(w.hook(t.ID))
			tx.OnRollback(w.undone(t.ID + " undone"))
			return nil
		})
		s.must(err)
	}
	s.said(w, "tsk_1")
}

// Two transactions want the same two rows, each in its order. PostgreSQL undoes one of them,
// which is run again; SQLite lets one wait for the other.
func hooksOfUndoneTries(s *Suite) {
	tasks := []orchestrator.Task{s.task("one"), s.task("two")}
	agents := []string{"kik", "coder"}
	locked := []chan struct{}{make(chan struct{}), make(chan struct{})}
	var tries, undone, committed [2]atomic.Int64
	var all sync.WaitGroup
	for i, task := range tasks {
		all.Go(func() {
			err := s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
				first := tries[i].Add(1) == 1
				tx.OnCommit(func() { committed[i].Add(1) })
				tx.OnRollback(func(maybe bool) {
					undone[i].Add(1)
					if maybe {
						s.Errorf("the outcome of a try that was undone is not known")
					}
				})
				if err := tx.Append(s.ctx, event.Event{Type: event.Progress, DelegationID: task.RootID, Actor: "kik"}); err != nil {
					return err
				}
				if _, err := tx.LockBreaker(s.ctx, agents[i]); err != nil {
					return err
				}
				if first {
					close(locked[i])
					select {
					case <-locked[1-i]:
					case <-time.After(time.Second):
					}
				}
				_, err := tx.LockBreaker(s.ctx, agents[1-i])
				return err
			})
			if err != nil {
				s.Errorf("%s: %v", task.ID, err)
			}
		})
	}
	all.Wait()
	again := int64(0)
	for i := range tasks {
		again += undone[i].Load()
		if committed[i].Load() != 1 || undone[i].Load() != tries[i].Load()-1 {
			s.Errorf("%s: %d tries, %d told that they were undone, %d that they were committed", tasks[i].ID, tries[i].Load(), undone[i].Load(), committed[i].Load())
		}
	}
	if strings.HasPrefix(s.URL, "postgres") && again == 0 {
		s.Error("nothing was undone, so this shows nothing")
	}
}
