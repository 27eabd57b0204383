package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// trial is a step whose end is compared with what the database has.
type trial struct {
	word                     string // that its events have
	commits, undone, unknown int
	err                      error
}

// on has the trial told what became of a try.
func (r *trial) on(tx orchestrator.Tx) {
	tx.OnCommit(func() { r.commits++ })
	tx.OnRollback(func(maybe bool) {
		if maybe {
			r.unknown++
		} else {
			r.undone++
		}
	})
}

// says is an event of the trial.
func (r *trial) says() event.Event {
	return event.Event{Type: event.Progress, Actor: "kik", Data: event.Data(map[string]any{"text": r.word})}
}

// judge compares what was said of a trial with how often its word is there: want or 0 times.
func (r *trial) judge(t *testing.T, there, want int) {
	t.Helper()
	ok := there == 0 && r.err != nil && r.commits == 0
	switch {
	case r.err == nil:
		ok = there == want && r.commits == 1 && r.unknown == 0
	case r.unknown > 0:
		ok = (there == 0 || there == want) && r.unknown == 1 && r.commits == 0
	}
	if !ok {
		t.Errorf("%s: it is there %d times, was committed %d times, undone %d times and unknown %d times: %v",
			r.word, there, r.commits, r.undone, r.unknown, r.err)
	}
}

// kinds are steps by what they send: how they write, and how many events.
var kinds = []struct {
	name   string
	events int
	steps  bool // on a task that is there
	run    func(ctx context.Context, s *sqlstore.Store, d *orchestrator.Delegation, r *trial) error
}{
	{"one statement", 1, true, func(ctx context.Context, s *sqlstore.Store, d *orchestrator.Delegation, r *trial) error {
		return s.InTask(ctx, d.TaskID, func(tx orchestrator.Tx) error {
			r.on(tx)
			d, err := tx.Delegation(ctx, d.ID)
			if err != nil {
				return err
			}
			d.Losses++
			tx.Task().Handoffs++
			if err := tx.Move(ctx, d, d.State, d.Attempt); err != nil {
				return err
			}
			return tx.Append(ctx, r.says())
		})
	}},
	{"a transaction", 20, true, func(ctx context.Context, s *sqlstore.Store, d *orchestrator.Delegation, r *trial) error {
		return s.InTask(ctx, d.TaskID, func(tx orchestrator.Tx) error {
			r.on(tx)
			d, err := tx.Delegation(ctx, d.ID)
			if err != nil {
				return err
			}
			d.Losses++
			tx.Task().Handoffs++
			if err := tx.PutBlob(ctx, r.word, "x", []byte("x")); err != nil {
				return err
			}
			for range 20 {
				if err := tx.Append(ctx, r.says()); err != nil {
					return err
				}
			}
			return tx.Move(ctx, d, d.State, d.Attempt)
		})
	}},
	{"a new task", 1, false, newTrial("")},
	{"a new task with a key", 1, false, newTrial("key of ")},
}

func newTrial(key string) func(context.Context, *sqlstore.Store, *orchestrator.Delegation, *trial) error {
	return func(ctx context.Context, s *sqlstore.Store, d *orchestrator.Delegation, r *trial) error {
		task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now()), Agent: "kik", Text: r.word, Requester: "ann", RequesterID: "usr_ann"}
		if key != "" {
			task.Key = key + r.word
		}
		_, fresh, err := s.NewTask(ctx, task, func(tx orchestrator.Tx) error {
			r.on(tx)
			root := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, now()), To: "kik", Text: r.word, State: orchestrator.Queued, Requester: "ann"}
			if err := tx.Insert(ctx, &root); err != nil {
				return err
			}
			return tx.Append(ctx, r.says())
		})
		if err == nil && !fresh {
			return fmt.Errorf("%s is no new task", r.word)
		}
		return err
	}
}

// TestAConnectionBreaksAtEachMessage: whichever message of a step is lost, with its
// connection, or its answer, or arrives late, the step is there once or not at all, as its
// caller was told, its events with its rows.
func TestAConnectionBreaksAtEachMessage(t *testing.T) {
	w, direct, s := newWay(t)
	_, d := newTask(t, s, 1)
	steps := 0
	for _, kind := range kinds {
		for what, how := range map[string]passage{"request": cut, "answer": cut, "late": late} {
			for n, more := 1, true; more; n++ {
				r := &trial{word: fmt.Sprint("word-", strings.ReplaceAll(kind.name, " ", "-"), "-", what, "-", n, "-")}
				choose, seen := nth(n, how)
				if what == "answer" {
					w.set(nil, choose)
				} else {
					w.set(choose, nil)
				}
				w.arriving(20*time.Millisecond, func() { r.err = kind.run(t.Context(), s, d, r) })
				w.set(nil, nil)
				more = *seen >= n
				if what == "late" {
					w.arrive()
					time.Sleep(80 * time.Millisecond)
				}
				there := words(t, direct, r.word)
				r.judge(t, there, kind.events)
				if kind.steps && there > 0 {
					steps++
				}
			}
		}
	}
	got, err := direct.Delegation(t.Context(), d.ID)
	if err != nil {
		t.Fatal(err)
	}
	task, err := direct.Task(t.Context(), d.TaskID)
	if err != nil || got.Losses != steps || task.Handoffs != steps || steps == 0 {
		t.Errorf("%d steps are in the log, the rows have %d and %d: %v", steps, got.Losses, task.Handoffs, err)
	}
	if err := direct.VerifyTask(t.Context(), d.TaskID); err != nil {
		t.Error(err)
	}
}

// words counts the events with a word.
func words(t *testing.T, s *sqlstore.Store, word string) int {
	t.Helper()
	var n int
	if err := s.Row(t.Context(), "select count(*) from events where data like ?", "%"+word+"%").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
