package sqlstore_test

import (
	"errors"
	"reflect"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

var taskTests = map[string]func(*Suite){
	"a task comes back as it was made":             taskComesBack,
	"the same key makes one task":                  sameKey,
	"a failed transaction leaves nothing":          failedLeavesNothing,
	"counters are written with the commit":         counters,
	"hostile text is kept as far as it can be":     hostileText,
	"an id is found by its ending":                 endings,
	"bytes come back, and the same id is no error": blobs,
}

func taskComesBack(s *Suite) {
	want := orchestrator.Task{ID: "tsk_1", RootID: "dlg_1", Agent: "kik", Text: "Fix\nit", Repository: "app", Ref: "main", Key: "k1", Complexity: "simple",
		RequesterID: "usr_1", Requester: "ann", Via: origin.From(origin.CLI), RevertOf: "apr_1", Handoffs: 2, CreatedAt: s.Clock.Now()}
	made, fresh, err := s.Store.NewTask(s.ctx, want, func(orchestrator.Tx) error { return nil })
	if err != nil || !fresh || !reflect.DeepEqual(made, want) {
		s.Fatalf("made %+v %t %v", made, fresh, err)
	}
	for name, read := range map[string]func() (orchestrator.Task, error){
		"by id":  func() (orchestrator.Task, error) { return s.Store.Task(s.ctx, "tsk_1") },
		"by key": func() (orchestrator.Task, error) { return s.Store.TaskByKey(s.ctx, "usr_1", "k1") },
	} {
		if got, err := read(); err != nil || !reflect.DeepEqual(got, want) {
			s.Errorf("%s: %+v %v, want %+v", name, got, err, want)
		}
	}
	_, err = s.Store.Task(s.ctx, "tsk_none")
	s.is(err, orchestrator.ErrNotFound)
	_, err = s.Store.TaskByKey(s.ctx, "usr_1", "")
	s.is(err, orchestrator.ErrNotFound)
	s.is(s.Store.InTask(s.ctx, "tsk_none", func(orchestrator.Tx) error { return nil }), orchestrator.ErrNotFound)
}

func sameKey(s *Suite) {
	var mu sync.Mutex
	ids, ran, made := map[string]bool{}, 0, 0
	errs := together(20, func(int) error {
		task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, s.Clock.Now()), Agent: "kik", Key: "deploy", RequesterID: "usr_ann"}
		got, fresh, err := s.Store.NewTask(s.ctx, task, func(tx orchestrator.Tx) error {
			mu.Lock()
			ran++
			mu.Unlock()
			return tx.Append(s.ctx, event.Event{Type: event.TaskCreated, Actor: "ann"})
		})
		mu.Lock()
		defer mu.Unlock()
		ids[got.ID] = true
		if fresh {
			made++
		}
		return err
	})
	if count(errs, nil) != 20 || len(ids) != 1 || made != 1 || ran != 1 {
		s.Fatalf("%d tasks, %d fresh, fn ran %d times, errors %v", len(ids), made, ran, errs)
	}
	other := orchestrator.Task{ID: "tsk_other", Agent: "kik", Key: "deploy", RequesterID: "usr_bob"}
	if _, fresh, err := s.Store.NewTask(s.ctx, other, func(orchestrator.Tx) error { return nil }); err != nil || !fresh {
		s.Errorf("another person's key is their own: %t %v", fresh, err)
	}
}

func failedLeavesNothing(s *Suite) {
	task := s.task("one")
	no := errors.New("no")
	work := func(tx orchestrator.Tx) error {
		tx.Task().Handoffs = 9
		return errors.Join(tx.Insert(s.ctx, &orchestrator.Delegation{ID: "dlg_x", To: "kik", State: orchestrator.Queued}),
			tx.Append(s.ctx, event.Event{Type: event.Queued, Actor: "kik"}), tx.PutBlob(s.ctx, "b", "log", []byte("x")))
	}
	sub := s.Store.Hub().Watch("", 8)
	defer sub.Close()
	s.is(s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error { return errors.Join(work(tx), no) }), no)
	func() {
		defer func() { _ = recover() }()
		_ = s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
			s.must(work(tx))
			panic("in the middle")
		})
	}()
	got, err := s.Store.Task(s.ctx, task.ID)
	s.must(err)
	if got.Handoffs != 0 || got.LastN != 1 {
		s.Errorf("the task has changed: %+v", got)
	}
	_, err = s.Store.Delegation(s.ctx, "dlg_x")
	s.is(err, orchestrator.ErrNotFound)
	_, err = s.Store.Blob(s.ctx, "b")
	s.is(err, orchestrator.ErrNotFound)
	select {
	case n := <-sub.C:
		s.Errorf("watchers were told of what never happened: %+v", n)
	default:
	}
	s.in(task.ID, work) // the lock is free again
}

func counters(s *Suite) {
	task := s.task("one")
	ended := s.Clock.Now().Add(time.Second)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		tx.Task().Handoffs++
		tx.Task().EndedAt = &ended
		return nil
	})
	got, err := s.Store.Task(s.ctx, task.ID)
	s.must(err)
	if got.Handoffs != 1 || got.EndedAt == nil || !got.EndedAt.Equal(ended) {
		s.Errorf("got %+v", got)
	}
	s.in(task.ID, func(tx orchestrator.Tx) error {
		if tx.Task().Handoffs != 1 || !tx.Now().Equal(s.Clock.Now()) {
			s.Errorf("in the transaction: %+v at %s", tx.Task(), tx.Now())
		}
		tx.Task().EndedAt = nil
		return nil
	})
	if got, err := s.Store.Task(s.ctx, task.ID); err != nil || got.EndedAt != nil {
		s.Errorf("a retried task is still ended: %+v %v", got, err)
	}
}

func hostileText(s *Suite) {
	task := s.task("a\x00b\xffc ü 🏠")
	got, err := s.Store.Task(s.ctx, task.ID)
	s.must(err)
	if want := "a\uFFFDb\uFFFDc ü 🏠"; got.Text != want {
		s.Errorf("text %q, want %q", got.Text, want)
	}
	s.in(task.ID, func(tx orchestrator.Tx) error {
		return tx.Append(s.ctx, event.Event{Type: event.Progress, Actor: "k\x00k", Data: event.Data(map[string]any{"text": "\x00\xff' -- \u2028"})})
	})
	s.must(s.Store.VerifyTask(s.ctx, task.ID))
	s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error { //nolint:errcheck // the error of Append is looked at
		if err := tx.Append(s.ctx, event.Event{Type: event.Progress, Data: []byte("{")}); err == nil {
			s.Error("data that is no JSON was taken")
		}
		return nil
	})
}

func endings(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	for _, id := range []string{task.ID, d.ID} {
		found, err := s.Store.Resolve(s.ctx, id[len(id)-6:], 5, orchestrator.TaskPrefix, orchestrator.DelegationPrefix, orchestrator.RequestPrefix, orchestrator.UserPrefix, orchestrator.TokenPrefix)
		if err != nil || len(found) != 1 || found[0] != id {
			s.Errorf("ending of %s: %v %v", id, found, err)
		}
		if found, err := s.Store.Resolve(s.ctx, id[4:], 5, orchestrator.TaskPrefix, orchestrator.DelegationPrefix); err != nil || len(found) != 1 {
			s.Errorf("long ending of %s: %v %v", id, found, err)
		}
	}
	for _, ending := range []string{"", "abc", "%%%%%%", "______", "zzzzzz"} {
		if found, err := s.Store.Resolve(s.ctx, ending, 5, orchestrator.TaskPrefix); err != nil || len(found) != 0 {
			s.Errorf("ending %q: %v %v", ending, found, err)
		}
	}
	s.delegation(task, func(d *orchestrator.Delegation) { d.ID = "dlg_1twins0" })
	s.delegation(task, func(d *orchestrator.Delegation) { d.ID = "dlg_2twins0" })
	if found, err := s.Store.Resolve(s.ctx, "TWINS0", 5, orchestrator.DelegationPrefix); err != nil || len(found) != 2 {
		s.Errorf("an ambiguous ending: %v %v", found, err)
	}
	if found, err := s.Store.Resolve(s.ctx, "twins0", 1, orchestrator.DelegationPrefix); err != nil || len(found) != 1 {
		s.Errorf("at most one: %v %v", found, err)
	}
}

func blobs(s *Suite) {
	task := s.task("one")
	data := []byte("\x00\x01\xff")
	s.in(task.ID, func(tx orchestrator.Tx) error {
		return errors.Join(tx.PutBlob(s.ctx, "b1", "bundle", data), tx.PutBlob(s.ctx, "b1", "bundle", []byte("other")), tx.PutBlob(s.ctx, "b2", "log", nil))
	})
	if got, err := s.Store.Blob(s.ctx, "b1"); err != nil || string(got) != string(data) {
		s.Errorf("b1 is %q, %v", got, err)
	}
	if got, err := s.Store.Blob(s.ctx, "b2"); err != nil || len(got) != 0 {
		s.Errorf("b2 is %q, %v", got, err)
	}
}
