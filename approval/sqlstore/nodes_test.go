package sqlstore_test

import (
	"context"
	"fmt"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
)

var nodeTests = map[string]func(*Suite){
	"what one node commits the other node hears": heard,
	"the order goes on when its node dies":       handOver,
	"two nodes write one history":                oneHistory,
	"a transaction ends with its context":        cancelled,
	"nodes are known while they are seen":        seen,
}

func heard(s *Suite) {
	task := s.task("one")
	two := s.open("two")
	sub := two.Hub().Watch("", 64)
	defer sub.Close()
	s.run(s.Store)
	s.run(two)
	deadline := time.After(patience)
	for i := 0; ; i++ {
		s.in(task.ID, appendOne(s.ctx, fmt.Sprint(i)))
		select {
		case n := <-sub.C:
			if n.TaskID == "" { // "look again", as after connecting
				continue
			}
			if n.TaskID != task.ID || n.Last < 1 || n.First > n.Last || len(n.Events) != 0 {
				s.Errorf("notice %+v", n)
			}
			return
		case <-time.After(50 * time.Millisecond): // not listening yet
		case <-deadline:
			s.Fatal("the other node heard nothing")
		}
		if two.Dialect() == "SQLite" { // one process has the file; others are only noticed
			select {
			case <-sub.C:
				return
			case <-time.After(time.Second): // it may have begun to watch after that
			case <-deadline:
				s.Fatal("the other process noticed nothing")
			}
		}
	}
}

func handOver(s *Suite) {
	task := s.task("one")
	ordered := func(want int64) {
		s.Helper()
		s.eventually(fmt.Sprintf("%d events have a position", want), func() bool {
			pos, err := s.Store.LastPosition(s.ctx)
			s.must(err)
			return pos == want
		})
	}
	stop := s.run(s.Store)
	ordered(1)
	// It stops without giving up its lease, as a killed one does.
	stop()
	if ok, err := s.Store.Lease(s.ctx, "sequencer", "one", time.Minute); err != nil || !ok {
		s.Fatalf("lease %t %v", ok, err)
	}
	two := s.open("two")
	stopTwo := s.run(two)
	s.in(task.ID, appendOne(s.ctx, "a"))
	s.Clock.Add(time.Minute) // until the lease runs out
	ordered(2)
	stopTwo()
	s.in(task.ID, appendOne(s.ctx, "b"))
	s.run(s.Store) // the other one has given it up
	ordered(3)
	checkOrder(s, 3, 5)
}

func oneHistory(s *Suite) {
	two := s.open("two")
	s.run(s.Store)
	s.run(two)
	task := s.task("one")
	nodes := []*sqlstore.Store{s.Store, two}
	errs := together(40, func(i int) error { return nodes[i%2].InTask(s.ctx, task.ID, appendOne(s.ctx, fmt.Sprint(i))) })
	if count(errs, nil) != 40 {
		s.Fatalf("errors %v", errs)
	}
	s.must(s.Store.VerifyTask(s.ctx, task.ID))
	s.eventually("41 events have a position", func() bool {
		pos, err := two.LastPosition(s.ctx)
		s.must(err)
		return pos == 41
	})
	checkOrder(s, 41, 5)
}

func cancelled(s *Suite) {
	task := s.task("one")
	ctx, cancel := context.WithCancel(s.ctx)
	err := s.Store.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
		s.must(tx.Append(ctx, event.Event{Type: event.Progress}))
		cancel()
		return nil
	})
	s.is(err, context.Canceled)
	got, err := s.Store.Task(s.ctx, task.ID)
	if err != nil || got.LastN != 1 {
		s.Errorf("a cancelled transaction was written: %+v %v", got, err)
	}
	s.in(task.ID, appendOne(s.ctx, "a")) // the lock is free
}

func seen(s *Suite) {
	s.must(s.Store.SaveNode(s.ctx, store.Node{Name: "one", URL: "http://one", Version: "1"}))
	s.Clock.Add(time.Minute)
	s.must(s.Store.SaveNode(s.ctx, store.Node{Name: "two"}))
	got, err := s.Store.Nodes(s.ctx, s.Clock.Now())
	if err != nil || len(got) != 1 || got[0].Name != "two" {
		s.Errorf("nodes %+v %v", got, err)
	}
	s.must(s.Store.SaveNode(s.ctx, store.Node{Name: "one", URL: "http://1", Version: "2"}))
	got, err = s.Store.Nodes(s.ctx, s.Clock.Now())
	if err != nil || len(got) != 2 || got[0].URL != "http://1" || got[0].Version != "2" {
		s.Errorf("nodes %+v %v", got, err)
	}
}
