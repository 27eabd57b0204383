package store_test

import (
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/store/storetest"
)

// TestABreakerThatWasNotReadIsProved: a step that takes a breaker for closed is run again
// where another node has counted a failure, however the step is written.
func TestABreakerThatWasNotReadIsProved(t *testing.T) {
	url := storetest.Postgres(t)
	s, other := open(t, url), open(t, url)
	ctx := t.Context()
	fails := func(agent string) {
		t.Helper()
		task, _ := newTask(t, other, 1)
		err := other.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
			b, err := tx.LockBreaker(ctx, agent)
			if err != nil {
				return err
			}
			return tx.PutBreaker(ctx, b.Fail(tx.Now(), "no", 1, time.Hour))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, way := range map[string]func(tx orchestrator.Tx) error{
		"one statement": func(tx orchestrator.Tx) error {
			return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
		},
		"a transaction": func(tx orchestrator.Tx) error {
			if err := tx.PutBlob(ctx, "a blob", "test", []byte("x")); err != nil {
				return err
			}
			return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
		},
		"nothing": func(orchestrator.Tx) error { return nil },
		"an error": func(tx orchestrator.Tx) error {
			if b, err := tx.Breaker(ctx, "an error"); err != nil || b.Resting() {
				return err
			}
			return orchestrator.ErrLost
		},
	} {
		task, _ := newTask(t, s, 1)
		calls, last := 0, guard.Breaker{}
		step := func() error {
			calls = 0
			return s.InTask(ctx, task.ID, func(tx orchestrator.Tx) (err error) {
				calls++
				if last, err = tx.Breaker(ctx, name); err != nil {
					return err
				}
				if calls == 1 && !last.Resting() {
					fails(name)
				}
				return way(tx)
			})
		}
		if err := step(); err != nil || calls != 2 || !last.Resting() {
			t.Errorf("%s: %d calls, the last one saw %+v: %v", name, calls, last, err)
		}
		if err := step(); err != nil || calls != 1 || !last.Resting() {
			t.Errorf("%s: one that is known to rest is read at once: %d calls, %+v: %v", name, calls, last, err)
		}
	}
}

// TestAClaimLooksAtTheSharedContext: the write that looks whether there is anything for a run
// says nothing is there only where Given has nothing.
func TestAClaimLooksAtTheSharedContext(t *testing.T) {
	s := open(t, storetest.Postgres(t))
	ctx := t.Context()
	task, _ := newTask(t, s, 1)
	all := sharedctx.Rights{Agent: "kik", TaskID: task.ID}
	some := sharedctx.Rights{Agent: "kik", TaskID: task.ID, Reads: []string{"news"}}
	check := func(what string, rights sharedctx.Rights, want bool) {
		t.Helper()
		var none func() bool
		err := s.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
			none = tx.GivesNone(ctx, rights)
			if none() {
				t.Errorf("%s: it was said before it was looked at", what)
			}
			return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
		})
		given, lost := s.Given(ctx, rights, 10)
		if err != nil || lost != nil || none() != want || want != (len(given) == 0) {
			t.Errorf("%s: none %v, want %v beside %v: %v, %v", what, none(), want, given, err, lost)
		}
	}
	put := func(namespace, key string, life time.Duration) {
		t.Helper()
		e, err := sharedctx.New(s.Now(), namespace, key, "v", "lea", life)
		if err == nil {
			_, err = s.Context("lea").Set(ctx, e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	drop := func(namespace, key string) {
		if err := s.Context("lea").Delete(ctx, namespace, key); err != nil {
			t.Fatal(err)
		}
	}
	check("empty", all, true)
	for _, foreign := range []string{sharedctx.Memory("lea"), sharedctx.Handoff("tsk_other"), sharedctx.Board("tsk_other")} {
		put(foreign, "k", time.Hour)
	}
	put(sharedctx.Board(task.ID), sharedctx.RecordPrefix+"one", time.Hour)
	check("what is others'", all, true)
	for _, own := range []string{sharedctx.Memory("kik"), sharedctx.Handoff(task.ID), sharedctx.Board(task.ID), "kik"} {
		put(own, "k", time.Hour)
		check("own "+own, all, false)
		check("own "+own, some, false)
		drop(own, "k")
	}
	for _, topic := range []string{"a", "guide", "handogg", "landing", "memory", "plan", "tasks", "zoo", "handoff", "task"} {
		put(topic, "k", time.Hour)
		check("topic "+topic, all, false)
		check("topic "+topic, some, true)
		drop(topic, "k")
	}
	put("news", "k", time.Hour)
	check("what it reads", some, false)
	check("what it reads", all, false)
}
