package orchestrator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// settled waits until the relay holds no slot.
func (r *relay) settled(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		used, _ := r.engine.Slots()
		if used == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d slots are in use and nothing is left to do", used)
		}
	}
}

// Work that a transaction makes due is claimed in it, and a caller goes on in the
// transaction that ends its last child: a chain a → b → c takes six commits, one for each
// time that the work changes hands. What is stored is what a worker would have written.
func TestAChainTakesSixCommits(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		r := newRelay(t, url)
		r.chain(t)   // the node works from here on
		r.settled(t) // who watches may hear of a commit before it is counted
		before := r.commits.Load()
		r.chain(t)
		r.settled(t)
		if made := r.commits.Load() - before; made != 6 {
			t.Errorf("the chain took %d commits", made)
		}
		page, err := r.engine.Store.List(t.Context(), orchestrator.Filter{RootsOnly: true})
		if err != nil || len(page.Items) != 2 {
			t.Fatal(page, err)
		}
		tree, err := r.engine.Store.Tree(t.Context(), page.Items[0].TaskID)
		if err != nil || len(tree) != 3 {
			t.Fatal(tree, err)
		}
		events, err := r.engine.Store.Events(t.Context(), page.Items[0].TaskID, 0, 200)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree {
			if d.State != orchestrator.Completed || d.Attempt != 1 || d.Losses != 0 || d.StartedAt == nil || d.Holder != "" || d.TokenHash != "" || d.Work.ProcessWait {
				t.Errorf("%s is %+v", d.To, d)
			}
			var seen []event.Type
			for _, e := range events {
				if e.DelegationID == d.ID {
					seen = append(seen, e.Type)
				}
			}
			want := []event.Type{event.Queued, event.Acknowledged, event.Delegated, event.Waiting, event.Resumed, event.Completed}
			if d.To == "c" {
				want = []event.Type{event.Queued, event.Acknowledged, event.Completed}
			}
			if d.ParentID == "" {
				want = append([]event.Type{event.TaskCreated}, want...)
			}
			if !sameSet(seen, want) {
				t.Errorf("%s has the events %v", d.To, seen)
			}
		}
	})
}

// sameSet compares types of events whatever their order.
func sameSet(a, b []event.Type) bool {
	n := map[event.Type]int{}
	for _, t := range a {
		n[t]++
	}
	for _, t := range b {
		n[t]--
	}
	for _, left := range n {
		if left != 0 {
			return false
		}
	}
	return true
}

// stumbling is a store that is away in the middle of things: one transaction in five is
// lost, another one is committed without anybody being told.
type stumbling struct {
	orchestrator.Store
	n *atomic.Int64
}

func stumble(s orchestrator.Store) orchestrator.Store { return stumbling{s, new(atomic.Int64)} }

func (s stumbling) InTask(ctx context.Context, id string, fn func(orchestrator.Tx) error) error {
	away := orchestrator.Errorf(orchestrator.CodeUnavailable, "The database is away.")
	switch n := s.n.Add(1); {
	case n%5 == 3:
		return s.Store.InTask(ctx, id, func(tx orchestrator.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			return away
		})
	case n%5 == 0:
		var u untold
		if err := s.Store.InTask(ctx, id, func(tx orchestrator.Tx) error {
			u = untold{Tx: tx, ended: new([]func(bool))}
			return fn(u)
		}); err != nil {
			return err
		}
		for _, ended := range *u.ended {
			ended(true)
		}
		return away
	}
	return s.Store.InTask(ctx, id, fn)
}

// untold is a transaction of which nobody learns that it was committed.
type untold struct {
	orchestrator.Tx
	ended *[]func(maybe bool)
}

func (u untold) OnCommit(func()) {}

func (u untold) OnRollback(fn func(maybe bool)) {
	*u.ended = append(*u.ended, fn)
	u.Tx.OnRollback(fn)
}

// One slot is enough for chains of any depth, many at once, also where the database is away
// at every other step: the slot goes where the work goes and is there again in the end (O10).
func TestTheSlotGoesWithTheWork(t *testing.T) {
	calm := func(s orchestrator.Store) orchestrator.Store { return s }
	for _, c := range []struct {
		name    string
		workers int
		wrap    func(orchestrator.Store) orchestrator.Store
	}{
		{"one slot", 1, calm},
		{"three slots", 3, calm},
		{"one slot and a store that stumbles", 1, stumble},
		{"three slots and a store that stumbles", 3, stumble},
	} {
		t.Run(c.name, func(t *testing.T) {
			databases(t, func(t *testing.T, url string) {
				r := newRelayOf(t, url, c.workers, c.wrap)
				rounds(6, 3, func() { r.chain(t) })
				r.settled(t)
			})
		})
	}
}
