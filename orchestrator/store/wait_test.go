package store_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// steps are a step that is one statement, or one member of a group, and one that begins a
// transaction of its own.
var steps = map[string]func(ctx context.Context, tx orchestrator.Tx) error{
	"small": func(ctx context.Context, tx orchestrator.Tx) error {
		return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
	},
	"with a blob": func(ctx context.Context, tx orchestrator.Tx) error {
		if err := tx.PutBlob(ctx, orchestrator.NewID("blob_", time.Now()), "x", []byte("x")); err != nil {
			return err
		}
		return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
	},
}

// TestTheEndOfAContextEndsEveryWait: a step that waits for the one writer of SQLite, or for a
// row of PostgreSQL that another node has, ends with its context, leaves nothing behind, and
// holds up nobody who came after it.
func TestTheEndOfAContextEndsEveryWait(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		other := s
		if s.Dialect() == "PostgreSQL" {
			other = open(t, url)
		}
		task, _ := newTask(t, s, 1)
		want := 1
		for name, step := range steps {
			release := held(t, other, task.ID)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			began := time.Now()
			undone := 0
			err := s.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
				tx.OnRollback(func(maybe bool) {
					if undone++; maybe {
						t.Errorf("%s: a step that was not written is called unknown", name)
					}
				})
				return step(ctx, tx)
			})
			cancel()
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 2*time.Second {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			after := make(chan error, 1)
			go func() {
				after <- s.InTask(context.Background(), task.ID, func(tx orchestrator.Tx) error { return step(t.Context(), tx) })
			}()
			release()
			if err := <-after; err != nil {
				t.Errorf("%s: the step after it: %v", name, err)
			}
			want++
			all, err := s.Events(t.Context(), task.ID, 0, 100)
			if err != nil || len(all) != want {
				t.Errorf("%s: %d events, want %d: %v", name, len(all), want, err)
			}
		}
	})
}

// held has another transaction write to the task until release is called.
func held(t *testing.T, s *sqlstore.Store, taskID string) (release func()) {
	t.Helper()
	has, free := make(chan struct{}), make(chan struct{})
	var end sync.WaitGroup
	end.Go(func() {
		first := sync.OnceFunc(func() { close(has) })
		err := s.Transact(context.Background(), func(tx *store.Tx) error {
			_, err := tx.Exec("update tasks set ref = ref where id = ?", taskID)
			first()
			<-free
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-has
	return func() { close(free); end.Wait() }
}

// TestAContextThatEndsInsideAStep: wherever its context ends before the commit, a step comes
// to nothing and says why.
func TestAContextThatEndsInsideAStep(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		task, d := newTask(t, s, 1)
		for name, step := range steps {
			for point := range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				at := func(n int) {
					if n == point {
						cancel()
					}
				}
				err := s.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
					at(0)
					if _, err := tx.Delegation(ctx, d.ID); err != nil {
						return err
					}
					at(1)
					tx.Task().Handoffs++
					err := step(ctx, tx)
					at(2)
					return err
				})
				cancel()
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s, ended at %d: %v", name, point, err)
				}
			}
		}
		got, err := s.Task(t.Context(), task.ID)
		if err != nil || got.Handoffs != 0 || got.LastN != 1 {
			t.Errorf("%d hand-offs, %d events: %v", got.Handoffs, got.LastN, err)
		}
	})
}

// TestAFileThatAnotherProgramHolds: steps that wait for it in vain say so, all of them, and
// go on when it is free.
func TestAFileThatAnotherProgramHolds(t *testing.T) {
	at := storetest.Ready(t, sqliteURL(t))
	s := open(t, at)
	first, _ := newTask(t, s, 1)
	second, _ := newTask(t, s, 1)
	other, err := sql.Open("sqlite", strings.TrimPrefix(at, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "begin immediate"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, id := range []string{first.ID, second.ID} {
		wg.Go(func() {
			err := s.InTask(t.Context(), id, func(tx orchestrator.Tx) error { return steps["small"](t.Context(), tx) })
			if orchestrator.CodeOf(err) != orchestrator.CodeUnavailable || !strings.Contains(err.Error(), "locked by another program") {
				t.Errorf("a step beside another program: %v", err)
			}
		})
	}
	wg.Wait()
	if _, err := conn.ExecContext(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first.ID, second.ID} {
		if err := s.InTask(t.Context(), id, func(tx orchestrator.Tx) error { return steps["small"](t.Context(), tx) }); err != nil {
			t.Error(err)
		}
		if got, err := s.Task(t.Context(), id); err != nil || got.LastN != 2 {
			t.Errorf("%d events: %v", got.LastN, err)
		}
	}
}
