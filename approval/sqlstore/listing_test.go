package sqlstore_test

import (
	"fmt"
	"slices"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

var listingTests = map[string]func(*Suite){
	"the listing follows by itself":                      followsItself,
	"what one node writes the other one lists":           listedElsewhere,
	"a follower that dies half-way goes on where it was": followerDies,
	"what no event names is listed at once":              listedUnnamed,
	"a listing that was spoilt is made anew":             reindexed,
}

// unlisted counts what the listing has otherwise than the delegations.
func (s *Suite) unlisted() (n int) {
	s.Helper()
	s.must(s.Store.Row(s.ctx, storetest.Unlisted).Scan(&n))
	return n
}

// child makes a delegation with an event that names it.
func (s *Suite) child(task orchestrator.Task, text string) *orchestrator.Delegation {
	s.Helper()
	d := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, s.Clock.Now()), To: "kik", Text: text, State: orchestrator.Queued}
	s.in(task.ID, func(tx orchestrator.Tx) error {
		if err := tx.Insert(s.ctx, &d); err != nil {
			return err
		}
		return tx.Append(s.ctx, event.Event{Type: event.Queued, DelegationID: d.ID, Actor: "kik"})
	})
	return &d
}

// end ends a delegation with an event.
func (s *Suite) end(task orchestrator.Task, id string, state orchestrator.State) {
	s.Helper()
	s.in(task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, id)
		if err != nil {
			return err
		}
		from, at := d.State, tx.Now()
		d.State, d.EndedAt = state, &at
		if err := tx.Move(s.ctx, d, from, d.Attempt); err != nil {
			return err
		}
		return tx.Append(s.ctx, event.Event{Type: event.Completed, DelegationID: d.ID, Actor: "kik"})
	})
}

func followsItself(s *Suite) {
	s.run(s.Store)
	task := s.task("one")
	d := s.child(task, "wash")
	s.eventually("it is listed", func() bool { return s.unlisted() == 0 })
	s.end(task, d.ID, orchestrator.Completed)
	s.eventually("its end is listed", func() bool { return s.unlisted() == 0 })
}

func listedElsewhere(s *Suite) {
	two := s.open("two")
	s.run(s.Store)
	s.run(two)
	task := s.task("one")
	for range 20 {
		s.Clock.Add(time.Millisecond)
		d := s.child(task, "wash")
		page, err := two.List(s.ctx, orchestrator.Filter{States: []orchestrator.State{orchestrator.Queued}})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != d.ID {
			s.Fatalf("the other node lists %+v, %v", page.Items, err)
		}
		if ids, err := two.Resolve(s.ctx, d.ID[len(d.ID)-8:], 2, orchestrator.DelegationPrefix); err != nil || !slices.Equal(ids, []string{d.ID}) {
			s.Fatalf("the other node finds %v, %v", ids, err)
		}
		s.end(task, d.ID, orchestrator.Completed)
	}
}

// followerDies: the process ends in the middle of the first batch, and of the second.
func followerDies(s *Suite) {
	deaths, batches := 0, 0
	dying, err := sqlstore.Open(s.ctx, s.URL, store.Options{Node: "dying", Now: s.Clock.Now, Pool: 2, Trace: func(point string) {
		if batches++; point == "listing" && batches != 2 && deaths < 2 {
			deaths++
			panic("dead")
		}
	}})
	s.must(err)
	s.Cleanup(func() { s.must(dying.Close()) })
	task := s.task("one")
	var made []string
	for i := range 40 {
		s.Clock.Add(time.Millisecond)
		made = append(made, s.child(task, fmt.Sprint("word", i)).ID)
		s.in(task.ID, func(tx orchestrator.Tx) error {
			for range 60 { // so that there are several batches
				if err := tx.Append(s.ctx, event.Event{Type: event.Progress, DelegationID: made[i/2], Actor: "kik"}); err != nil {
					return err
				}
			}
			return nil
		})
		if i%2 == 1 {
			s.end(task, made[i/2], orchestrator.Completed)
		}
	}
	if s.Store.Dialect() == "PostgreSQL" { // in the place of the node that orders, which would list as well
		for _, text := range []string{"insert into event_order (pos, task_id, n) select row_number() over (order by n), task_id, n from events", "delete from event_queue"} {
			_, err := s.Store.Exec(s.ctx, text)
			s.must(err)
		}
	}
	list := func() (page orchestrator.Page, died bool) {
		defer func() { died = recover() != nil }()
		page, err := dying.List(s.ctx, orchestrator.Filter{Limit: 100})
		s.must(err)
		return page, false
	}
	for range 2 {
		if _, died := list(); !died {
			s.Fatal("it did not die")
		}
		if s.unlisted() == 0 {
			s.Fatal("it had done all before it died")
		}
	}
	if page, died := list(); died || len(page.Items) != len(made) || s.unlisted() != 0 {
		s.Errorf("%d of %d are listed, %d of them wrong", len(page.Items), len(made), s.unlisted())
	}
	for _, f := range []orchestrator.Filter{{Query: "word7"}, {Query: "word39"}} {
		if page, err := s.Store.List(s.ctx, f); err != nil || len(page.Items) != 1 {
			s.Errorf("%s: %d, %v", f.Query, len(page.Items), err)
		}
	}
}

// listedUnnamed: the follower would never find what changes without an event that says whom
// it is about.
func listedUnnamed(s *Suite) {
	task := s.task("one")
	d := s.child(task, "wash")
	_, err := s.Store.List(s.ctx, orchestrator.Filter{})
	s.must(err)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, d.ID)
		if err != nil {
			return err
		}
		from := d.State
		d.State = orchestrator.Running
		return tx.Move(s.ctx, d, from, d.Attempt)
	})
	if n := s.unlisted(); n != 0 {
		s.Errorf("%d are not listed as they are", n)
	}
}

func reindexed(s *Suite) {
	task := s.task("one")
	for i := range 30 {
		s.Clock.Add(time.Millisecond)
		s.child(task, fmt.Sprint("word", i, " common"))
	}
	_, err := s.Store.List(s.ctx, orchestrator.Filter{})
	s.must(err)
	for _, text := range []string{
		"update listing set state = 'failed', to_agent = 'nobody', ended_at = 7 where id in (select id from listing order by id limit 9)",
		"delete from listing where id in (select id from listing order by id desc limit 9)",
		"update listing set id = 'dlg_00ghost' where id in (select id from listing order by id desc limit 1)",
		"update cursors set pos = pos + 1000000 where name = 'listing'",
	} {
		_, err := s.Store.Exec(s.ctx, text)
		s.must(err)
	}
	if s.unlisted() == 0 {
		s.Fatal("nothing is spoilt")
	}
	var told []int64
	n, err := s.Store.Reindex(s.ctx, func(done int64) { told = append(told, done) })
	if err != nil || n != 30 || !slices.Equal(told, []int64{30}) || s.unlisted() != 0 {
		s.Errorf("%d made anew, told %v, %d are wrong: %v", n, told, s.unlisted(), err)
	}
	s.child(task, "later")
	for query, want := range map[string]int{"common": 30, "word17": 1, "later": 1} {
		if page, err := s.Store.List(s.ctx, orchestrator.Filter{Query: query, Limit: 100}); err != nil || len(page.Items) != want {
			s.Errorf("%s: %d, %v", query, len(page.Items), err)
		}
	}
}
