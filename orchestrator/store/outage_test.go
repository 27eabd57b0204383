package store_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/pgtest"
)

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// TestPostgresGoesAway: while the server is away every call says so; when it is back
// everything goes on, the notices and the order included, and nothing was lost.
func TestPostgresGoesAway(t *testing.T) {
	server := pgtest.NewServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	var nodes []*sqlstore.Store
	stopped := make(chan error, 2)
	for _, name := range []string{"one", "two"} {
		s, err := sqlstore.Open(ctx, server.URL("postgres"), store.Options{Node: name, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, s)
		go func() { stopped <- s.Run(ctx) }()
	}
	one, two := nodes[0], nodes[1]
	task, _ := newTask(t, one, 1)
	write := func() error {
		return one.InTask(ctx, task.ID, func(tx orchestrator.Tx) error {
			return tx.Append(ctx, event.Event{Type: event.Progress, Actor: "kik"})
		})
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if err := write(); orchestrator.CodeOf(err) != orchestrator.CodeUnavailable {
		t.Errorf("a write while the server is away: %v", err)
	}
	if _, err := one.Task(ctx, task.ID); orchestrator.CodeOf(err) != orchestrator.CodeUnavailable {
		t.Errorf("a read while the server is away: %v", err)
	}
	if err := one.Ping(ctx); err == nil {
		t.Error("a ping while the server is away is answered")
	}
	server.Start(t)
	sub := two.Hub().Watch("", 1024)
	defer sub.Close()
	if err := write(); err != nil {
		t.Errorf("the first write after it is back: %v", err)
	}
	eventually(t, "the other node hears again", func() bool {
		if err := write(); err != nil {
			t.Error(err)
		}
		select {
		case n := <-sub.C:
			return n.TaskID == task.ID
		default:
			return false
		}
	})
	got, err := one.Task(ctx, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the order is complete", func() bool {
		pos, err := two.LastPosition(ctx)
		return err == nil && pos == got.LastN
	})
	if err := one.VerifyTask(ctx, task.ID); err != nil {
		t.Error(err)
	}
	cancel()
	for _, s := range nodes {
		if err := <-stopped; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
