package store_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/pgtest"
)

// eachDatabase runs a benchmark on databases whose commits wait for the disk. The
// temporary folder must lie on a real disk for SQLite's figures to mean anything.
func eachDatabase(b *testing.B, bench func(b *testing.B, url string)) {
	b.Run("SQLite", func(b *testing.B) { bench(b, sqliteURL(b)) })
	b.Run("PostgreSQL", func(b *testing.B) {
		bench(b, pgtest.NewServer(b, pgtest.Durable).URL("postgres"))
	})
}

// BenchmarkCommit is the yardstick: one durable commit of a row of 300 bytes.
func BenchmarkCommit(b *testing.B) {
	eachDatabase(b, func(b *testing.B, url string) {
		insert := bare(b, url)
		for b.Loop() {
			if err := insert(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCommit16 is BenchmarkCommit from sixteen goroutines.
func BenchmarkCommit16(b *testing.B) {
	eachDatabase(b, func(b *testing.B, url string) {
		insert := bare(b, url)
		sixteen(b, func(int) error { return insert() })
	})
}

// bare makes a table and returns what inserts one row into it and commits.
func bare(b *testing.B, url string) func() error {
	driver, dsn, mark := "postgres", url, "$1"
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, mark = "sqlite", "?"
		dsn = "file:" + filepath.ToSlash(path) + "?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	if driver == "sqlite" {
		db.SetMaxOpenConns(1)
	}
	if _, err := db.Exec("create table bare (id integer, text text)"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare("insert into bare (id, text) values (1, " + mark + ")")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("x", 300)
	return func() error {
		_, err := insert.Exec(text)
		return err
	}
}

// sixteen runs one from sixteen goroutines, each with its own number.
func sixteen(b *testing.B, one func(i int) error) {
	var next atomic.Int64
	b.SetParallelism((16 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		i := int(next.Add(1)) % 16
		for pb.Next() {
			if err := one(i); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkHopTx is one transaction as a hop has it: lock the task, read a row, move
// it, append two events. Compare it with BenchmarkCommit of the same run.
func BenchmarkHopTx(b *testing.B) {
	eachDatabase(b, func(b *testing.B, url string) {
		s := open(b, url)
		task, d := newTask(b, s, 1)
		for b.Loop() {
			if err := hop(s, task.ID, d.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkHopTx16 is BenchmarkHopTx on sixteen tasks at once.
func BenchmarkHopTx16(b *testing.B) {
	eachDatabase(b, func(b *testing.B, url string) {
		s := open(b, url)
		type pair struct{ task, delegation string }
		var pairs []pair
		for range 16 {
			task, d := newTask(b, s, 1)
			pairs = append(pairs, pair{task.ID, d.ID})
		}
		sixteen(b, func(i int) error { return hop(s, pairs[i].task, pairs[i].delegation) })
	})
}

func hop(s orchestrator.Store, task, delegation string) error {
	ctx := context.Background()
	return s.InTask(ctx, task, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(ctx, delegation)
		if err != nil {
			return err
		}
		from, attempt := d.State, d.Attempt
		d.State, d.Attempt, d.Holder = orchestrator.Running, attempt+1, "one"
		if from == orchestrator.Running {
			d.State, d.Holder = orchestrator.Queued, ""
		}
		if err := tx.Move(ctx, d, from, attempt); err != nil {
			return err
		}
		for range 2 {
			if err := tx.Append(ctx, event.Event{Type: event.Progress, DelegationID: d.ID, Actor: "coder", Data: event.Data(map[string]any{"text": "Working on it", "agent": "coder"})}); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkChainWrites is the floor of a chain a → b → c: nothing but its six steps, each
// written as the engine writes it, beside as many bare commits.
func BenchmarkChainWrites(b *testing.B) {
	eachDatabase(b, func(b *testing.B, url string) { chainWrites(b, url, 1) })
}

// BenchmarkChainWrites16 is BenchmarkChainWrites from sixteen goroutines.
func BenchmarkChainWrites16(b *testing.B) {
	eachDatabase(b, func(b *testing.B, url string) { chainWrites(b, url, 16) })
}

func chainWrites(b *testing.B, url string, atOnce int) {
	s := open(b, url)
	at := url
	if strings.HasPrefix(url, "sqlite:") {
		at += ".bare"
	}
	insert := bare(b, at)
	each := func(n int, do func() error) time.Duration {
		var wg sync.WaitGroup
		start := time.Now()
		for range atOnce {
			wg.Go(func() {
				for range n {
					if err := do(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	each(5, func() error { return oneChain(s) })
	var ours, theirs time.Duration
	for b.Loop() {
		ours += each(4, func() error { return oneChain(s) })
		theirs += each(4*6, insert)
	}
	b.ReportMetric(float64(ours)/float64(theirs), "×bare")
	b.ReportMetric(float64(ours.Microseconds())/1000/float64(b.N*4*atOnce), "ms/chain")
}

// oneChain writes the six steps.
func oneChain(s *sqlstore.Store) error {
	ctx := context.Background()
	var ids [3]string
	say := func(tx orchestrator.Tx, id string, types ...event.Type) error {
		for _, t := range types {
			if err := tx.Append(ctx, event.Event{Type: t, DelegationID: id, Actor: "kik", Data: event.Data(map[string]any{"agent": "kik", "text": strings.Repeat("x", 60)})}); err != nil {
				return err
			}
		}
		return nil
	}
	insert := func(tx orchestrator.Tx, i int) error {
		d := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, tx.Now()), To: "kik", Text: "Carry this down and up again", State: orchestrator.Running,
			Requester: "ann", ReadyAt: tx.Now(), Attempt: 1, Holder: "bench", LeaseUntil: tx.Now().Add(time.Minute), HopKey: "hop"}
		if i > 0 {
			d.ParentID, d.From, d.Depth = ids[i-1], "kik", i
		}
		d.TokenHash = orchestrator.HashToken(d.ID)
		ids[i] = d.ID
		return tx.Insert(ctx, &d)
	}
	move := func(tx orchestrator.Tx, i int, to orchestrator.State) error {
		d, err := tx.Delegation(ctx, ids[i])
		if err != nil {
			return err
		}
		from := d.State
		if d.State = to; to == orchestrator.Completed {
			d.EndedAt, d.Holder, d.TokenHash, d.Result = new(tx.Now()), "", "", &agent.Result{Text: "done"}
		}
		d.Since = tx.Now()
		return tx.Move(ctx, d, from, 1)
	}
	task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, time.Now()), Agent: "kik", Text: "Carry this down and up again", Requester: "ann"}
	if _, _, err := s.NewTask(ctx, task, func(tx orchestrator.Tx) error {
		return errors.Join(insert(tx, 0), say(tx, ids[0], event.TaskCreated, event.Queued, event.Acknowledged))
	}); err != nil {
		return err
	}
	for _, step := range []func(tx orchestrator.Tx) error{
		func(tx orchestrator.Tx) error {
			return errors.Join(insert(tx, 1), move(tx, 0, orchestrator.Waiting), say(tx, ids[1], event.Delegated, event.Queued, event.Acknowledged, event.Waiting))
		},
		func(tx orchestrator.Tx) error {
			return errors.Join(insert(tx, 2), move(tx, 1, orchestrator.Waiting), say(tx, ids[2], event.Delegated, event.Queued, event.Acknowledged, event.Waiting))
		},
		func(tx orchestrator.Tx) error {
			return errors.Join(move(tx, 2, orchestrator.Completed), move(tx, 1, orchestrator.Running), say(tx, ids[2], event.Completed, event.Resumed))
		},
		func(tx orchestrator.Tx) error {
			return errors.Join(move(tx, 1, orchestrator.Completed), move(tx, 0, orchestrator.Running), say(tx, ids[1], event.Completed, event.Resumed))
		},
		func(tx orchestrator.Tx) error {
			tx.Task().EndedAt = new(tx.Now())
			return errors.Join(move(tx, 0, orchestrator.Completed), say(tx, ids[0], event.Completed))
		},
	} {
		if err := s.InTask(ctx, task.ID, step); err != nil {
			return err
		}
	}
	return nil
}
