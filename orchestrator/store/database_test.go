package store_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/pgtest"
	"gatehouse/orchestrator/store/storetest"
)

// both runs a test on a new database of each kind, migrated already.
func both(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, storetest.Ready(t, sqliteURL(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, storetest.Postgres(t)) })
}

// bothEmpty is both with databases that hold nothing.
func bothEmpty(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, sqliteURL(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, pgtest.DSN(t)) })
}

func open(t testing.TB, url string) *sqlstore.Store {
	t.Helper()
	s, err := openAs(t, url, "node")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// openAs opens the store of a node, which the caller closes.
func openAs(t testing.TB, url, node string) (*sqlstore.Store, error) {
	return sqlstore.Open(t.Context(), url, store.Options{Node: node, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

// newTask makes a task with its root and n events.
func newTask(t testing.TB, s *sqlstore.Store, n int) (orchestrator.Task, *orchestrator.Delegation) {
	t.Helper()
	ctx := context.Background()
	d := &orchestrator.Delegation{}
	task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now()), Agent: "kik", Text: "Fix the flaky test", Requester: "ann"}
	task, _, err := s.NewTask(ctx, task, func(tx orchestrator.Tx) error {
		*d = orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, now()), To: "kik", Text: task.Text, State: orchestrator.Queued, Requester: "ann", ReadyAt: tx.Now()}
		for i := range n {
			if err := tx.Append(ctx, event.Event{Type: event.Progress, DelegationID: d.ID, Actor: "kik", Data: event.Data(map[string]any{"text": fmt.Sprint("step ", i)})}); err != nil {
				return err
			}
		}
		return tx.Insert(ctx, d)
	})
	if err != nil {
		t.Fatal(err)
	}
	return task, d
}
