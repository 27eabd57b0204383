package orchestrator_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/workflow"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/pgtest"
	"gatehouse/orchestrator/store/storetest"
)

// durably runs a benchmark on databases whose commits wait for the disk. The temporary
// folder must lie on a real disk for SQLite's figures to mean anything.
func durably(b *testing.B, bench func(b *testing.B, url string)) {
	b.Run("sqlite", func(b *testing.B) { bench(b, "sqlite:"+filepath.Join(b.TempDir(), "gatehouse.db")) })
	b.Run("postgres", func(b *testing.B) { bench(b, pgtest.NewServer(b, pgtest.Durable).URL("postgres")) })
}

// counted counts the transactions that an engine commits.
type counted struct {
	orchestrator.Store
	n *atomic.Int64
}

func (c counted) InTask(ctx context.Context, id string, fn func(orchestrator.Tx) error) error {
	err := c.Store.InTask(ctx, id, fn)
	if err == nil {
		c.n.Add(1)
	}
	return err
}

func (c counted) NewTask(ctx context.Context, t orchestrator.Task, fn func(orchestrator.Tx) error) (orchestrator.Task, bool, error) {
	c.n.Add(1)
	return c.Store.NewTask(ctx, t, fn)
}

// relay is a node whose agents a, b and c hand a task down without doing anything. They
// stand in for the kind workflow, which gets no folder.
type relay struct {
	engine  *orchestrator.Engine
	commits atomic.Int64
}

func newRelay(b testing.TB, url string) *relay {
	b.Helper()
	return newRelayOf(b, url, 32, func(s orchestrator.Store) orchestrator.Store { return s })
}

// newRelayOf is newRelay with so many workers and a store as wrap makes it.
func newRelayOf(b testing.TB, url string, workers int, wrap func(orchestrator.Store) orchestrator.Store) *relay {
	b.Helper()
	r := &relay{}
	s, err := sqlstore.Open(b.Context(), storetest.Ready(b, url), store.Options{Node: "bench", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	registry, err := agent.NewRegistry([]agent.Spec{{Name: "a", Kind: agent.Workflow}, {Name: "b", Kind: agent.Workflow}, {Name: "c", Kind: agent.Workflow}})
	if err != nil {
		b.Fatal(err)
	}
	r.engine = orchestrator.New(orchestrator.Options{
		Node: "bench", Store: counted{wrap(s), &r.commits}, Hub: s.Hub(), Data: b.TempDir(), URL: func() string { return "" }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Kinds: map[agent.Kind]agent.Runner{agent.Workflow: agenttest.Like{Of: workflow.Traits, Runner: byName{
			"a": agenttest.NewScripted(agenttest.HandOn("b")), "b": agenttest.NewScripted(agenttest.HandOn("c")), "c": agenttest.NewScripted(agenttest.Answer("done"))}}},
	}, orchestrator.Config{Agents: registry,
		Settings: orchestrator.Settings{Workers: workers, Lease: 30 * time.Second, MaxAttempts: 3, MaxDepth: 3, MaxHandoffs: 5, Cycle: "strict", Capacity: "queue"}})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, part := range []func(context.Context) error{s.Run, r.engine.Run} {
		wg.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				b.Errorf("a part of the node ended: %v", err)
			}
		})
	}
	b.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return r
}

// chain sends one task and waits until it has come back.
func (r *relay) chain(b testing.TB) {
	ctx := b.Context()
	_, root, _, err := r.engine.Submit(ctx, orchestrator.Submission{Agent: "a", Text: "Carry this down and up again", Via: origin.From(origin.API), Requester: "ann"})
	if err != nil {
		b.Error(err)
		return
	}
	sub := r.engine.Hub().Watch(root.TaskID, 32)
	defer sub.Close()
	if d, err := r.engine.Store.Delegation(ctx, root.ID); err != nil || d.State.Ended() {
		return
	}
	for {
		select {
		case n := <-sub.C:
			for _, e := range n.Events {
				if e.DelegationID == root.ID && (e.Type == event.Completed || e.Type == event.Failed) {
					if e.Type == event.Failed {
						b.Errorf("the chain failed: %s", e.Data)
					}
					return
				}
			}
		case <-time.After(30 * time.Second):
			b.Error("the chain hangs")
			return
		}
	}
}

// rounds runs do n times, from width goroutines.
func rounds(n, width int, do func()) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			for next.Add(1) <= int64(n) {
				do()
			}
		})
	}
	wg.Wait()
}

// BenchmarkChain runs chains a → b → c with guards, events and durable commits, one and
// sixteen at once. After each round of chains it makes as many bare durable commits of
// 300 bytes as the chains made, from as many goroutines; "x-bare" is how much longer
// the chains took. Disks change their pace, so only that ratio says something; the aim
// is 2.
func BenchmarkChain(b *testing.B) {
	durably(b, func(b *testing.B, url string) {
		r, commit := newRelay(b, url), bare(b, url)
		for _, width := range []int{1, 16} {
			b.Run(strconv.Itoa(width), func(b *testing.B) {
				rounds(width, width, func() { r.chain(b) })
				var chains, commits int64
				var took, bareTook time.Duration
				for left := b.N; left > 0; {
					n := min(left, 4*width)
					left -= n
					before, start := r.commits.Load(), time.Now()
					rounds(n, width, func() { r.chain(b) })
					took += time.Since(start)
					made := r.commits.Load() - before
					b.StopTimer()
					start = time.Now()
					rounds(int(made), width, func() {
						if err := commit(); err != nil {
							b.Error(err)
						}
					})
					bareTook += time.Since(start)
					b.StartTimer()
					chains, commits = chains+int64(n), commits+made
				}
				b.ReportMetric(float64(commits)/float64(chains), "commits/chain")
				b.ReportMetric(float64(chains)/took.Seconds(), "chains/s")
				b.ReportMetric(float64(commits)/bareTook.Seconds(), "bare-commits/s")
				b.ReportMetric(took.Seconds()/bareTook.Seconds(), "x-bare")
			})
		}
	})
}

// BenchmarkCommits is the yardstick alone: durable commits of one row of 300 bytes.
func BenchmarkCommits(b *testing.B) {
	durably(b, func(b *testing.B, url string) {
		commit := bare(b, url)
		for _, width := range []int{1, 16} {
			b.Run(strconv.Itoa(width), func(b *testing.B) {
				rounds(b.N, width, func() {
					if err := commit(); err != nil {
						b.Error(err)
					}
				})
			})
		}
	})
}

// bare makes a table beside the product's and returns what commits one row into it.
func bare(b *testing.B, url string) func() error {
	b.Helper()
	driver, dsn, text := "postgres", url, "insert into bare (text) values ($1)"
	conns := 16
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, dsn, text, conns = "sqlite", "file:"+path+".bare?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)", "insert into bare (text) values (?)", 1
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	if _, err := db.Exec("create table bare (text text)"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare(text)
	if err != nil {
		b.Fatal(err)
	}
	row := strings.Repeat("x", 300)
	return func() error {
		_, err := insert.Exec(row)
		return err
	}
}
