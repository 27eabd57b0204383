package sqlstore_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// patience is how long a test waits for what happens in another goroutine.
const patience = 20 * time.Second

// Suite is one test's database.
type Suite struct {
	*testing.T
	URL   string
	Clock *storetest.Clock
	Store *sqlstore.Store
	ctx   context.Context
}

func TestSQLite(t *testing.T) {
	suite(t, func(t testing.TB) string {
		return storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "gate house.db"))
	})
}

func TestPostgres(t *testing.T) { suite(t, storetest.Postgres) }

// suite is what every database passes: what the engine, the gateway and the pages may rely
// on. url makes an empty database for one test.
func suite(t *testing.T, url func(testing.TB) string) {
	for _, part := range []struct {
		name  string
		tests map[string]func(*Suite)
	}{
		{"tasks", taskTests}, {"steps", stepTests}, {"hooks", hookTests}, {"delegations", delegationTests}, {"events", eventTests}, {"claims", claimTests}, {"lists", listTests}, {"listing", listingTests},
		{"approvals", approvalTests}, {"outbox", outboxTests}, {"people", peopleTests}, {"accounts", accountTests}, {"context", contextTests}, {"nodes", nodeTests}, {"configured", configuredTests}, {"audit", auditTests},
		{"telegram", telegramTests}, {"telegram buttons", buttonTests}, {"drafts", draftTests}, {"readings", readingTests}, {"insight", insightTests}, {"views", viewTests}, {"history", historyTests},
		{"today", todayTests}, {"deliveries", deliveryTests},
		{"retention", retentionTests},
	} {
		t.Run(part.name, func(t *testing.T) {
			for name, test := range part.tests {
				t.Run(name, func(t *testing.T) {
					s := &Suite{T: t, URL: url(t), Clock: storetest.NewClock(), ctx: t.Context()}
					s.Store = s.open("one")
					test(s)
				})
			}
		})
	}
}

// open opens the test's database as one more node.
func (s *Suite) open(node string) *sqlstore.Store {
	s.Helper()
	st, err := sqlstore.Open(s.ctx, s.URL, store.Options{Node: node, Now: s.Clock.Now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Pool: 8})
	if err != nil {
		s.Fatalf("open: %v", err)
	}
	s.Cleanup(func() {
		if err := st.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return st
}

// run runs a node's goroutines until the returned function is called or the test ends.
func (s *Suite) run(st *sqlstore.Store) (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- st.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				s.Errorf("run: %v", err)
			}
		})
	}
	s.Cleanup(stop)
	return stop
}

func (s *Suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *Suite) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("error %v, want %v", err, want)
	}
}

// in runs fn in a transaction of the task.
func (s *Suite) in(task string, fn func(tx orchestrator.Tx) error) {
	s.Helper()
	s.must(s.Store.InTask(s.ctx, task, fn))
}

// eventually waits until ok is true.
func (s *Suite) eventually(what string, ok func() bool) {
	s.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			s.Fatalf("waited in vain: %s", what)
		}
	}
}

// task makes a task of ann's for kik.
func (s *Suite) task(text string) orchestrator.Task {
	s.Helper()
	task, fresh, err := s.Store.NewTask(s.ctx, orchestrator.Task{
		ID: orchestrator.NewID(orchestrator.TaskPrefix, s.Clock.Now()), Agent: "kik", Text: text, RequesterID: "usr_ann", Requester: "ann", Via: origin.From(origin.Web),
	}, func(tx orchestrator.Tx) error {
		return tx.Append(s.ctx, event.Event{Type: event.TaskCreated, Actor: "ann"})
	})
	if err != nil || !fresh {
		s.Fatalf("new task: %t %v", fresh, err)
	}
	return task
}

// delegation is a queued one of the task, due now; change may alter it.
func (s *Suite) delegation(task orchestrator.Task, change ...func(*orchestrator.Delegation)) *orchestrator.Delegation {
	s.Helper()
	d := &orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, s.Clock.Now()), To: task.Agent, Text: task.Text, State: orchestrator.Queued,
		Requester: task.Requester, ReadyAt: s.Clock.Now()}
	for _, c := range change {
		c(d)
	}
	s.in(task.ID, func(tx orchestrator.Tx) error { return tx.Insert(s.ctx, d) })
	return d
}

// together calls fn n times at once and returns the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func count(errs []error, is error) int {
	n := 0
	for _, err := range errs {
		if (is == nil && err == nil) || (is != nil && errors.Is(err, is)) {
			n++
		}
	}
	return n
}
