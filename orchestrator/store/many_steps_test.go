package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// soakTime is how long many steps run beside each other.
const soakTime = 2 * time.Second

// nodesOf opens the nodes that may work on a database at once: two, or the one of SQLite.
func nodesOf(t *testing.T, url string) []*sqlstore.Store {
	t.Helper()
	nodes := []*sqlstore.Store{open(t, url)}
	if nodes[0].Dialect() == "PostgreSQL" {
		two, err := openAs(t, url, "two")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = two.Close() })
		nodes = append(nodes, two)
	}
	return nodes
}

// errRefused is the error of a step that thinks better of it.
var errRefused = errors.New("refused")

// soak is steps of many kinds at once, and what was said of them.
type soak struct {
	nodes                []*sqlstore.Store
	on                   []*orchestrator.Delegation
	said                 []atomic.Int64 // steps that were said to be done, by delegation
	tries, hooks, undone atomic.Int64
}

// TestManyStepsAtOnce: of steps that are refused, panic, run out of time, or meet those of
// another node and renewals, what was said to be done is there once and the rest is not.
func TestManyStepsAtOnce(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		k := &soak{nodes: nodesOf(t, url)}
		for range 8 {
			_, d := newTask(t, k.nodes[0], 1)
			k.on = append(k.on, d)
		}
		k.said = make([]atomic.Int64, len(k.on))
		end := time.Now().Add(soakTime)
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for r := rand.New(rand.NewPCG(uint64(i), 7)); time.Now().Before(end); {
					k.one(t, r)
				}
			})
		}
		all.Go(func() { k.renew(t, end) })
		all.Wait()
		k.check(t)
	})
}

// one takes one step on some delegation.
func (k *soak) one(t *testing.T, r *rand.Rand) {
	i, kind, size := r.IntN(len(k.on)), r.IntN(10), r.IntN(6)
	ctx := context.Background()
	if kind < 3 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1+r.IntN(40))*time.Millisecond)
		defer cancel()
	}
	err := k.step(ctx, k.nodes[r.IntN(len(k.nodes))], k.on[i], kind, size)
	switch {
	case err == nil:
		k.said[i].Add(1)
	case !errors.Is(err, errRefused) && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("kind %d: %v", kind, err)
	}
}

// step adds one to the counters of a delegation and its task, a child, or more than one
// statement takes, and events.
func (k *soak) step(ctx context.Context, s *sqlstore.Store, d *orchestrator.Delegation, kind, size int) (err error) {
	defer func() {
		if recover() != nil {
			err = errRefused
		}
	}()
	return s.InTask(ctx, d.TaskID, func(tx orchestrator.Tx) error {
		k.tries.Add(1)
		tx.OnCommit(func() { k.hooks.Add(1) })
		tx.OnRollback(func(bool) { k.undone.Add(1) })
		d, err := tx.Delegation(ctx, d.ID)
		if err != nil {
			return err
		}
		tx.Task().Handoffs++
		d.OpenChildren++
		for n := range size {
			c := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, tx.Now()), ParentID: d.ID, From: "kik", To: "lea",
				Text: "x", HopKey: fmt.Sprint(d.OpenChildren, n), State: orchestrator.Queued, ReadyAt: tx.Now()}
			if d.OpenSpawned >= 60 {
				break
			}
			if err := tx.Insert(ctx, &c); err != nil {
				return err
			}
			d.OpenSpawned++
		}
		if kind == 4 {
			if err := tx.PutBlob(ctx, orchestrator.NewID("blob_", tx.Now()), "x", []byte("x")); err != nil {
				return err
			}
		}
		if err := tx.Move(ctx, d, d.State, d.Attempt); err != nil {
			return err
		}
		switch kind {
		case 5:
			return errRefused
		case 6:
			panic("a defect")
		}
		for range 1 + size {
			if err := tx.Append(ctx, event.Event{Type: event.Progress, DelegationID: d.ID, Actor: "kik"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// renew renews leases that nobody holds, and forgets what is remembered of their tasks.
func (k *soak) renew(t *testing.T, end time.Time) {
	var refs []orchestrator.Ref
	for _, d := range k.on {
		refs = append(refs, orchestrator.Ref{TaskID: d.TaskID, DelegationID: d.ID})
	}
	for time.Now().Before(end) {
		if _, err := k.nodes[0].Renew(context.Background(), "node", refs, time.Now().Add(time.Minute)); err != nil {
			t.Errorf("renew: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (k *soak) check(t *testing.T) {
	t.Helper()
	s, total := k.nodes[0], int64(0)
	for i, d := range k.on {
		task, err := s.Task(t.Context(), d.TaskID)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := s.Tree(t.Context(), d.TaskID)
		if err != nil {
			t.Fatal(err)
		}
		said := k.said[i].Load()
		total += said
		if int64(task.Handoffs) != said || int64(tree[0].OpenChildren) != said || tree[0].OpenSpawned != len(tree)-1 {
			t.Errorf("%d steps were done, the rows have %d and %d, and %d children of %d", said, task.Handoffs, tree[0].OpenChildren, tree[0].OpenSpawned, len(tree)-1)
		}
		if err := s.VerifyTask(t.Context(), d.TaskID); err != nil {
			t.Error(err)
		}
	}
	if total == 0 || k.hooks.Load() != total || k.tries.Load() != total+k.undone.Load() {
		t.Errorf("%d steps were done: %d tries, %d told of a commit, %d of none", total, k.tries.Load(), k.hooks.Load(), k.undone.Load())
	}
}

// TestNoAttemptIsTakenTwice: nodes, two processes of one name among them, claim, renew and
// end leases; each attempt is taken by one of them.
func TestNoAttemptIsTakenTwice(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		names := []string{"node", "two", "node"}
		nodes := append(nodesOf(t, url), open(t, url))
		if len(nodes) == 2 {
			names = []string{"node", "node"}
		}
		var ds []*orchestrator.Delegation
		for range 4 {
			_, d := newTask(t, nodes[0], 1)
			ds = append(ds, d)
		}
		var mu sync.Mutex
		taken := map[string]map[int]int{}
		end := time.Now().Add(soakTime)
		var all sync.WaitGroup
		for i := range 9 {
			all.Go(func() {
				for s, name := nodes[i%len(nodes)], names[i%len(nodes)]; time.Now().Before(end); {
					d := ds[rand.IntN(len(ds))]
					attempt, err := takeOrLetGo(s, name, d, rand.IntN(8))
					if err != nil && !errors.Is(err, orchestrator.ErrLost) {
						t.Error(err)
					}
					if err != nil || attempt == 0 {
						continue
					}
					mu.Lock()
					if taken[d.ID] == nil {
						taken[d.ID] = map[int]int{}
					}
					taken[d.ID][attempt]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for _, d := range ds {
			got, err := nodes[0].Delegation(t.Context(), d.ID)
			if err != nil {
				t.Fatal(err)
			}
			if len(taken[d.ID]) != got.Attempt || got.Attempt == 0 {
				t.Errorf("%d attempts, %d were taken", got.Attempt, len(taken[d.ID]))
			}
			for attempt, n := range taken[d.ID] {
				if n != 1 {
					t.Errorf("attempt %d was taken %d times", attempt, n)
				}
			}
			if err := nodes[0].VerifyTask(t.Context(), d.TaskID); err != nil {
				t.Error(err)
			}
		}
	})
}

// takeOrLetGo ends every lease of a node, renews one, or claims a delegation whose lease is
// over and returns the attempt.
func takeOrLetGo(s *sqlstore.Store, node string, d *orchestrator.Delegation, what int) (attempt int, err error) {
	const lease = 15 * time.Millisecond
	ctx := context.Background()
	switch what {
	case 0:
		return 0, s.Release(ctx, node, time.Now())
	case 1, 2:
		cur, err := s.Delegation(ctx, d.ID)
		if err == nil && cur.Holder == node {
			_, err = s.Renew(ctx, node, []orchestrator.Ref{{TaskID: d.TaskID, DelegationID: d.ID, Attempt: cur.Attempt}}, time.Now().Add(lease))
		}
		return 0, err
	}
	err = s.InTask(ctx, d.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(ctx, d.ID)
		if err != nil {
			return err
		}
		if d.Holder != "" && d.LeaseUntil.After(tx.Now()) {
			return orchestrator.ErrLost
		}
		from := d.State
		d.State, d.Holder, d.LeaseUntil = orchestrator.Running, node, tx.Now().Add(lease)
		d.Attempt++
		attempt = d.Attempt
		if err := tx.Move(ctx, d, from, d.Attempt-1); err != nil {
			return err
		}
		return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
	})
	return attempt, err
}
