package sqlstore_test

import (
	"errors"
	"slices"
	"sync"
	"time"

	"gatehouse/orchestrator"
)

var claimTests = map[string]func(*Suite){
	"what is due and free can be claimed":         claimable,
	"leases are renewed, or lost":                 renew,
	"a node that starts again gives back its own": release,
	"two nodes claim different work":              disjoint,
	"a singleton has one holder":                  singleton,
	"landings of one repository take turns":       landingTurns,
}

func with(state orchestrator.State, change func(*orchestrator.Delegation)) func(*orchestrator.Delegation) {
	return func(d *orchestrator.Delegation) {
		d.State = state
		if change != nil {
			change(d)
		}
	}
}

func claimable(s *Suite) {
	task := s.task("one")
	now := s.Clock.Now()
	held := func(until time.Duration) func(*orchestrator.Delegation) {
		return func(d *orchestrator.Delegation) { d.Holder, d.LeaseUntil = "other", now.Add(until) }
	}
	ready := func(d time.Duration) func(*orchestrator.Delegation) {
		return func(x *orchestrator.Delegation) { x.ReadyAt = now.Add(d) }
	}
	var want []string
	for _, c := range []struct {
		yes    bool
		state  orchestrator.State
		change func(*orchestrator.Delegation)
	}{
		{true, orchestrator.Queued, ready(-9 * time.Second)}, // longest ready first
		{true, orchestrator.Running, held(-8 * time.Second)}, // its node died
		{true, orchestrator.Checking, ready(-7 * time.Second)},
		{true, orchestrator.Landing, ready(-6 * time.Second)},
		{true, orchestrator.Landing, held(-5 * time.Second)},
		{true, orchestrator.Waiting, held(-4 * time.Second)}, // its process died with its node
		{true, orchestrator.Queued, held(-3 * time.Second)},  // the same, and its children have ended
		{true, orchestrator.Queued, ready(0)},
		{false, orchestrator.Queued, ready(time.Second)},
		{false, orchestrator.Queued, held(time.Second)}, // its process will be resumed by its holder
		{false, orchestrator.Running, held(time.Second)},
		{false, orchestrator.Checking, held(time.Second)},
		{false, orchestrator.Waiting, nil},
		{false, orchestrator.AwaitingApproval, nil},
		{false, orchestrator.Completed, nil},
		{false, orchestrator.Failed, nil},
	} {
		d := s.delegation(task, with(c.state, c.change))
		if c.yes {
			want = append(want, d.ID)
		}
	}
	ids := func(limit int) (ids []string) {
		refs, err := s.Store.Claimable(s.ctx, "one", now, limit)
		s.must(err)
		for _, r := range refs {
			if r.TaskID != task.ID || r.State == "" {
				s.Errorf("ref %+v", r)
			}
			ids = append(ids, r.DelegationID)
		}
		return ids
	}
	if got := ids(100); !slices.Equal(got, want) {
		s.Errorf("claimable\n%v, want\n%v", got, want)
	}
	if got := ids(3); !slices.Equal(got, want[:3]) {
		s.Errorf("three of them: %v", got)
	}
}

// landingTurns: of each repository the change that is approved longest lands, and no other one
// while it does; its node's death lets it, or the next one, go on.
func landingTurns(s *Suite) {
	task := s.task("one")
	now := s.Clock.Now()
	landing := func(repository string, ready time.Duration, change func(*orchestrator.Delegation)) string {
		return s.delegation(task, with(orchestrator.Landing, func(d *orchestrator.Delegation) {
			d.Repository, d.ReadyAt = repository, now.Add(ready)
			if change != nil {
				change(d)
			}
		})).ID
	}
	held := func(until time.Duration) func(*orchestrator.Delegation) {
		return func(d *orchestrator.Delegation) { d.Holder, d.LeaseUntil = "other", now.Add(until) }
	}
	is := func(what string, at time.Time, want ...string) {
		s.Helper()
		refs, err := s.Store.Claimable(s.ctx, "one", at, 100)
		s.must(err)
		var got []string
		for _, r := range refs {
			got = append(got, r.DelegationID)
		}
		if !slices.Equal(got, want) {
			s.Errorf("%s: claimable\n%v, want\n%v", what, got, want)
		}
	}
	second := landing("app", -time.Second, nil)
	first := landing("app", -3*time.Second, nil)
	heldUp := landing("app", 4*time.Second, nil)
	other := landing("docs", -2*time.Second, nil)
	is("nothing lands yet", now, first, other)
	is("one that is held up lets the others by", now.Add(9*time.Second), first, other)
	lands := landing("app", -5*time.Second, held(2*time.Second))
	is("one of app lands on another node", now, other)
	is("that node has died", now.Add(2*time.Second), first, other, lands)

	queues, err := s.Store.LandingQueues(s.ctx)
	s.must(err)
	if len(queues) != 2 || queues[0].Repository != "app" || queues[0].Waiting != 4 || queues[1].Waiting != 1 || queues[0].Landed != 0 {
		s.Errorf("queues %+v (%s, %s)", queues, second, heldUp)
	}
}

func renew(s *Suite) {
	task := s.task("one")
	now := s.Clock.Now()
	hold := func(node string, attempt int) orchestrator.Ref {
		d := s.delegation(task, with(orchestrator.Running, func(d *orchestrator.Delegation) {
			d.Holder, d.LeaseUntil, d.Attempt = node, now.Add(time.Second), attempt
		}))
		return orchestrator.Ref{TaskID: task.ID, DelegationID: d.ID, Attempt: attempt}
	}
	mine, also, theirs := hold("one", 1), hold("one", 3), hold("two", 1)
	old := also
	old.Attempt = 2
	until := now.Add(time.Minute)
	lost, err := s.Store.Renew(s.ctx, "one", []orchestrator.Ref{mine, old, theirs}, until)
	s.must(err)
	if !slices.Equal(lost, []orchestrator.Ref{old, theirs}) {
		s.Errorf("lost %+v", lost)
	}
	if d, err := s.Store.Delegation(s.ctx, mine.DelegationID); err != nil || !d.LeaseUntil.Equal(until) {
		s.Errorf("lease until %s, %v", d.LeaseUntil, err)
	}
	if d, err := s.Store.Delegation(s.ctx, theirs.DelegationID); err != nil || d.LeaseUntil.Equal(until) {
		s.Errorf("another node's lease was renewed: %v", err)
	}
	if lost, err := s.Store.Renew(s.ctx, "one", nil, until); err != nil || lost != nil {
		s.Errorf("renewing nothing: %v %v", lost, err)
	}
}

func release(s *Suite) {
	task := s.task("one")
	now := s.Clock.Now()
	for _, node := range []string{"one", "two"} {
		s.delegation(task, with(orchestrator.Running, func(d *orchestrator.Delegation) { d.Holder, d.LeaseUntil = node, now.Add(time.Minute) }))
	}
	s.must(s.Store.Release(s.ctx, "one", now))
	refs, err := s.Store.Claimable(s.ctx, "one", now, 10)
	if err != nil || len(refs) != 1 {
		s.Fatalf("claimable %v %v", refs, err)
	}
	if d, err := s.Store.Delegation(s.ctx, refs[0].DelegationID); err != nil || d.Holder != "one" {
		s.Errorf("released %+v %v", d, err)
	}
}

// claim takes what Claimable lists, as a worker does, and returns what it got.
func claim(s *Suite, st orchestrator.Store, node string, limit int) (got []string) {
	refs, err := st.Claimable(s.ctx, node, s.Clock.Now(), limit)
	s.must(err)
	for _, r := range refs {
		err := st.InTask(s.ctx, r.TaskID, func(tx orchestrator.Tx) error {
			d, err := tx.Delegation(s.ctx, r.DelegationID)
			if err != nil {
				return err
			}
			d.State, d.Attempt, d.Holder, d.LeaseUntil = orchestrator.Running, r.Attempt+1, node, s.Clock.Now().Add(time.Minute)
			return tx.Move(s.ctx, d, r.State, r.Attempt)
		})
		switch {
		case err == nil:
			got = append(got, r.DelegationID)
		case !errors.Is(err, orchestrator.ErrLost):
			s.Errorf("claim: %v", err)
		}
	}
	return got
}

func disjoint(s *Suite) {
	const n = 60
	for range n {
		s.delegation(s.task("one"))
	}
	nodes := map[string]orchestrator.Store{"one": s.Store, "two": s.open("two")}
	var mu sync.Mutex
	by := map[string]string{}
	var wg sync.WaitGroup
	for name, st := range nodes {
		for range 4 {
			wg.Go(func() {
				for empty := 0; empty < 3; {
					got := claim(s, st, name, 5)
					if len(got) == 0 {
						empty++
					}
					mu.Lock()
					for _, id := range got {
						if by[id] != "" {
							s.Errorf("%s was claimed by %s and %s", id, by[id], name)
						}
						by[id] = name
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for got := claim(s, nodes["one"], "one", n); len(got) > 0; got = claim(s, nodes["one"], "one", n) {
		for _, id := range got {
			by[id] = "one"
		}
	}
	if len(by) != n {
		s.Errorf("%d of %d were claimed", len(by), n)
	}
}

func singleton(s *Suite) {
	lease := func(holder string, want bool) {
		s.Helper()
		if got, err := s.Store.Lease(s.ctx, "cleanup", holder, time.Minute); err != nil || got != want {
			s.Errorf("%s got it: %t %v", holder, got, err)
		}
	}
	lease("one", true)
	lease("two", false)
	lease("one", true) // extended
	s.Clock.Add(time.Minute)
	lease("two", true) // it ran out
	lease("one", false)
	s.must(s.Store.Unlease(s.ctx, "cleanup", "one")) // not its own
	lease("one", false)
	s.must(s.Store.Unlease(s.ctx, "cleanup", "two"))
	lease("one", true)
	var mu sync.Mutex
	won := 0
	together(20, func(i int) error {
		got, err := s.Store.Lease(s.ctx, "new", string(rune('a'+i)), time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if got {
			won++
		}
		return err
	})
	if won != 1 {
		s.Errorf("%d holders", won)
	}
}
