package sqlstore_test

import (
	"context"
	"fmt"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

var eventTests = map[string]func(*Suite){
	"fifty who append at once make one gapless chain": manyAppend,
	"events come back in pages":                       eventPages,
	"watchers are told after the commit":              watchersTold,
	"the order over all tasks has no gaps":            orderAll,
}

func appendOne(ctx context.Context, actor string) func(orchestrator.Tx) error {
	return func(tx orchestrator.Tx) error {
		return tx.Append(ctx, event.Event{Type: event.Progress, DelegationID: "dlg_1", Actor: actor, Data: event.Data(map[string]any{"text": actor})})
	}
}

func manyAppend(s *Suite) {
	task := s.task("one")
	errs := together(50, func(i int) error {
		return s.Store.InTask(s.ctx, task.ID, appendOne(s.ctx, fmt.Sprint("agent", i)))
	})
	if count(errs, nil) != 50 {
		s.Fatalf("errors %v", errs)
	}
	events, err := s.Store.Events(s.ctx, task.ID, 0, 100)
	s.must(err)
	prev, ids := "", map[string]bool{}
	for i, e := range events {
		if e.N != int64(i+1) || e.TaskID != task.ID {
			s.Fatalf("event %d has n %d of %s", i, e.N, e.TaskID)
		}
		s.must(e.Verify(prev))
		prev, ids[e.ID] = e.Hash, true
	}
	if len(events) != 51 || len(ids) != 51 {
		s.Errorf("%d events with %d ids", len(events), len(ids))
	}
	if got, err := s.Store.Task(s.ctx, task.ID); err != nil || got.LastN != 51 || got.LastHash != prev {
		s.Errorf("task %+v %v", got, err)
	}
	s.must(s.Store.VerifyTask(s.ctx, task.ID))
}

func eventPages(s *Suite) {
	task := s.task("one")
	s.in(task.ID, func(tx orchestrator.Tx) error {
		for i := range 30 { // more than one statement takes
			s.must(appendOne(s.ctx, fmt.Sprint(i))(tx))
		}
		return nil
	})
	var n, last int64
	for {
		page, err := s.Store.Events(s.ctx, task.ID, last, 7)
		s.must(err)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			n++
			if e.N != n || !e.At.Equal(s.Clock.Now()) {
				s.Errorf("event %d has n %d at %s", n, e.N, e.At)
			}
			last = e.N
		}
	}
	if n != 31 {
		s.Errorf("%d events", n)
	}
	s.must(s.Store.VerifyTask(s.ctx, task.ID))
	if events, err := s.Store.Events(s.ctx, "tsk_none", 0, 7); err != nil || len(events) != 0 {
		s.Errorf("events of nothing: %v %v", events, err)
	}
}

func watchersTold(s *Suite) {
	task := s.task("one")
	sub := s.Store.Hub().Watch(task.ID, 8)
	defer sub.Close()
	s.in(task.ID, func(tx orchestrator.Tx) error {
		s.must(appendOne(s.ctx, "a")(tx))
		s.must(appendOne(s.ctx, "b")(tx))
		select {
		case n := <-sub.C:
			s.Errorf("told before the commit: %+v", n)
		default:
		}
		return nil
	})
	n := <-sub.C
	if n.TaskID != task.ID || n.First != 2 || n.Last != 3 || len(n.Events) != 2 || n.Events[1].Actor != "b" || n.Events[1].Hash == "" {
		s.Errorf("notice %+v", n)
	}
}

func orderAll(s *Suite) {
	s.run(s.Store)
	grown := s.Store.Grown().Changed()
	one, two := s.task("one"), s.task("two")
	errs := together(20, func(i int) error {
		return s.Store.InTask(s.ctx, []string{one.ID, two.ID}[i%2], func(tx orchestrator.Tx) error {
			for range 1 + i%4 { // a step's events are given their places at once
				if err := appendOne(s.ctx, fmt.Sprint(i))(tx); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if count(errs, nil) != 20 {
		s.Fatalf("errors %v", errs)
	}
	select {
	case <-grown:
	case <-s.ctx.Done():
		s.Fatal("nobody was told that the order has grown")
	}
	s.eventually("52 events have a position", func() bool {
		pos, err := s.Store.LastPosition(s.ctx)
		s.must(err)
		return pos == 52
	})
	checkOrder(s, 52, 1)
	checkOrder(s, 52, 5)
}

// checkOrder checks that the order has n events, without gaps and in the order of each task,
// read in pages of that size.
func checkOrder(s *Suite, n, size int) {
	s.Helper()
	var pos int64
	last := map[string]int64{}
	for {
		page, err := s.Store.Ordered(s.ctx, pos, size)
		s.must(err)
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			if p.Pos != pos+1 || p.N != last[p.TaskID]+1 {
				s.Fatalf("after position %d comes %d with n %d of %s after n %d", pos, p.Pos, p.N, p.TaskID, last[p.TaskID])
			}
			pos, last[p.TaskID] = p.Pos, p.N
		}
	}
	if int(pos) != n {
		s.Errorf("%d positions, want %d", pos, n)
	}
}
