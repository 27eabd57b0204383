package store_test

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// TestAnotherHistoryIsSeen: a task whose version is the same but whose last event is another
// one, as in a backup, is read again.
func TestAnotherHistoryIsSeen(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		task, _ := newTask(t, s, 1)
		if err := s.Spoil(t.Context(), "update tasks set last_hash = 'another' where id = ?", task.ID); err != nil {
			t.Fatal(err)
		}
		calls, from := 0, ""
		err := s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
			calls++
			from = tx.Task().LastHash
			return tx.Append(t.Context(), event.Event{Type: event.Progress, Actor: "kik"})
		})
		if err != nil || calls != 2 || from != "another" {
			t.Errorf("%d calls, the last one from %q: %v", calls, from, err)
		}
	})
}

// TestRetentionCountsWhatItChanged: a pass that changes nothing of a task leaves its version,
// and one that does has steps read it again.
func TestRetentionCountsWhatItChanged(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		ctx := t.Context()
		task, d := newTask(t, s, 1)
		err := s.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
			d, err := tx.Delegation(ctx, d.ID)
			if err != nil {
				return err
			}
			ended := tx.Now()
			d.State, d.EndedAt, tx.Task().EndedAt = orchestrator.Cancelled, &ended, &ended
			if err := tx.Move(ctx, d, orchestrator.Queued, 0); err != nil {
				return err
			}
			return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
		})
		if err != nil {
			t.Fatal(err)
		}
		before := s.Now()
		time.Sleep(2 * time.Millisecond)
		err = s.InTask(ctx, task.ID, func(tx orchestrator.Tx) error { // what is young keeps the task for later
			return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
		})
		if err != nil {
			t.Fatal(err)
		}
		version := func() (n int) {
			if err := s.Row(ctx, "select version from tasks where id = ?", task.ID).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		was := version()
		if _, _, err := s.Retain(ctx, retention.Blobs, before, store.After{}, 10); err != nil || version() != was {
			t.Errorf("version %d after %d, and nothing was removed: %v", version(), was, err)
		}
		done, _, err := s.Retain(ctx, retention.Texts, before, store.After{}, 10)
		if err != nil || done.Nothing() || version() == was {
			t.Errorf("version %d after %d, and %+v was removed: %v", version(), was, done, err)
		}
	})
}

// TestPreparedStepsAreBounded: steps of more shapes than are prepared all work.
func TestPreparedStepsAreBounded(t *testing.T) {
	s := open(t, storetest.Postgres(t))
	task, d := newTask(t, s, 1)
	ctx, n := t.Context(), 0
	for events := 1; events <= 16; events++ {
		for children := range 4 {
			err := s.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
				var made []string
				for i := range children {
					c := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, tx.Now()), ParentID: d.ID, From: "kik", To: "lea",
						Text: "x", HopKey: fmt.Sprint(events, children, i), State: orchestrator.Queued}
					if err := tx.Insert(ctx, &c); err != nil {
						return err
					}
					made = append(made, c.ID)
				}
				for i := range events {
					e := event.Event{Type: event.Progress, Actor: "kik"}
					if children > 0 { // it says of each what happened
						e.DelegationID = made[i%children]
					}
					if err := tx.Append(ctx, e); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			n += events
		}
	}
	prepared, most := s.Shapes()
	got, err := s.Task(ctx, task.ID)
	if err != nil || prepared != most || int(got.LastN) != n+1 {
		t.Errorf("%d of %d are prepared, %d events of %d are there: %v", prepared, most, got.LastN, n+1, err)
	}
}
