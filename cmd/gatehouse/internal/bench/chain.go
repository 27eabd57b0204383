package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
)

// Chains is what chains a → b → c took. Pace and Bare are medians of the rounds, so that a
// disk that changes its pace in one of them changes little.
type Chains struct {
	AtOnce  int     `json:"at_once"`
	Chains  int     `json:"chains"`
	Commits float64 `json:"commits_per_chain"`
	Pace    float64 `json:"chains_per_second"`
	Bare    float64 `json:"bare_commits_per_second"`
	// TimesBare is how much longer chains took than the same number of bare commits.
	TimesBare float64 `json:"times_bare_commits"`
	// What a chain asks of the database. Statements are ways to a server and back.
	Statements float64 `json:"statements_per_chain"`
	Rows       float64 `json:"rows_written_per_chain"`
	Bytes      float64 `json:"bytes_logged_per_chain"` // 0 on SQLite, which does not say
	Kinds      []Kind  `json:"statements"`             // that take longest first
}

// Kind is what a chain asks with statements of one kind, such as "select breakers".
type Kind struct {
	Name       string  `json:"kind"`
	Statements float64 `json:"per_chain"`
	Rows       float64 `json:"rows_written"`
	MS         float64 `json:"ms"` // until the answer begins, on all connections together
}

// kinds are what the chains have added to counts.
func kinds(sum map[string]store.Kind, chains float64) []Kind {
	var all []Kind
	for name, k := range sum {
		if k.Statements > 0 {
			all = append(all, Kind{name, float64(k.Statements) / chains, float64(k.Rows) / chains, k.Took.Seconds() * 1000 / chains})
		}
	}
	slices.SortFunc(all, func(a, b Kind) int { return cmp.Or(cmp.Compare(b.MS, a.MS), cmp.Compare(a.Name, b.Name)) })
	return all
}

// rounds is how often chains and bare commits take turns.
const rounds = 5

// Chains runs n chains, so many at once, in five rounds; after each round come as many bare
// commits as its chains made.
func (n *Node) Chains(ctx context.Context, count, atOnce int) (Chains, error) {
	c := Chains{AtOnce: atOnce}
	if err := together(atOnce, atOnce, func() error { return n.chain(ctx) }); err != nil { // warm
		return c, err
	}
	var pace, bare, ratio []float64
	size := max((count+rounds-1)/rounds, 1)
	commits := int64(0)
	work := store.Work{Kinds: map[string]store.Kind{}}
	for range rounds {
		asked, err := n.store.Work(ctx)
		if err != nil {
			return c, err
		}
		before, start := n.commits.Load(), time.Now()
		if err := together(size, atOnce, func() error { return n.chain(ctx) }); err != nil {
			return c, err
		}
		took, made := time.Since(start).Seconds(), n.commits.Load()-before
		now, err := n.store.Work(ctx)
		if err != nil {
			return c, err
		}
		work.Statements += now.Statements - asked.Statements
		work.Rows += now.Rows - asked.Rows
		work.Bytes += now.Bytes - asked.Bytes
		for name, k := range now.Kinds {
			was, sum := asked.Kinds[name], work.Kinds[name]
			work.Kinds[name] = store.Kind{Statements: sum.Statements + k.Statements - was.Statements, Rows: sum.Rows + k.Rows - was.Rows, Took: sum.Took + k.Took - was.Took}
		}
		start = time.Now()
		if err := together(int(made), atOnce, func() error { return n.bare.Commit(ctx) }); err != nil {
			return c, err
		}
		yardstick := time.Since(start).Seconds()
		pace, bare = append(pace, float64(size)/took), append(bare, float64(made)/yardstick)
		ratio = append(ratio, took/yardstick)
		c.Chains, commits = c.Chains+size, commits+made
	}
	all := float64(c.Chains)
	c.Commits, c.Pace, c.Bare, c.TimesBare = float64(commits)/all, median(pace), median(bare), median(ratio)
	c.Statements, c.Rows, c.Bytes = float64(work.Statements)/all, float64(work.Rows)/all, float64(work.Bytes)/all
	c.Kinds = kinds(work.Kinds, all)
	return c, nil
}

// chain sends one task and waits until it has come back.
func (n *Node) chain(ctx context.Context) error {
	root, sub, err := n.send(ctx, "a")
	if err != nil {
		return err
	}
	defer sub.Close()
	if d, err := n.store.Delegation(ctx, root.ID); err != nil || d.State.Ended() {
		return err
	}
	return n.ended(ctx, sub, root.ID)
}

// ended waits until a task has come back, by its events alone: a read would be no part of it.
func (n *Node) ended(ctx context.Context, sub *event.Subscription, rootID string) error {
	for {
		select {
		case notice := <-sub.C:
			for _, e := range notice.Events {
				switch {
				case e.DelegationID == rootID && e.Type == event.Failed:
					return fmt.Errorf("a chain failed: %s", e.Data)
				case e.DelegationID == rootID && e.Type == event.Completed:
					return nil
				}
			}
		case <-sub.Lagged():
			return n.reached(ctx, sub, rootID, func(d orchestrator.Delegation) bool { return d.State.Ended() })
		case err := <-n.broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// together runs do n times, so many at once, and returns the errors.
func together(n, atOnce int, do func() error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, atOnce)
	for i := range atOnce {
		wg.Go(func() {
			for next.Add(1) <= int64(n) {
				if errs[i] = do(); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// median of at least one figure.
func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
