package store_test

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/storetest"
)

// TestAProgramOfBeforeVersions: a node of an older program, or an administrator, writes rows
// of a task without an event and without a version. A step that has read them before, also
// from memory, sees that they are others now.
func TestAProgramOfBeforeVersions(t *testing.T) {
	at := storetest.Postgres(t)
	s := open(t, at)
	old, err := sql.Open("postgres", at)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	task, d := newTask(t, s, 1)
	older := func(text string) {
		t.Helper()
		tx, err := old.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.Exec("select id from tasks where id = $1 for update", task.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(text); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	children := 0
	step := func(during string) {
		t.Helper()
		err := s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
			d, err := tx.Delegation(t.Context(), d.ID)
			if err != nil {
				return err
			}
			if during != "" {
				older(during)
				during = ""
			}
			d.OpenChildren++
			if err := tx.Move(t.Context(), d, d.State, d.Attempt); err != nil {
				return err
			}
			return tx.Append(t.Context(), event.Event{Type: event.Progress, Actor: "kik"})
		})
		if err != nil {
			t.Fatal(err)
		}
		children++
	}
	check := func(losses, handoffs int) {
		t.Helper()
		got, err := s.Delegation(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		task, err := s.Task(t.Context(), task.ID)
		if err != nil || got.Losses != losses || got.OpenChildren != children || task.Handoffs != handoffs {
			t.Errorf("%d losses, %d children, %d hand-offs: %v", got.Losses, got.OpenChildren, task.Handoffs, err)
		}
	}
	step("")
	step("update delegations set losses = 7, state = state where id = '" + d.ID + "'")
	check(7, 0)
	older("update delegations set losses = 8, state = state where id = '" + d.ID + "'")
	step("")
	check(8, 0)
	step("update tasks set handoffs = 3 where id = '" + task.ID + "'")
	check(8, 3)
	older("update tasks set handoffs = 4 where id = '" + task.ID + "'")
	step("")
	check(8, 4)
}

// TestOneEventARowForOlderNodes: a node of before reads the order over all tasks one event a
// row, so each has its own while such a node works. What is read and sealed is the same.
func TestOneEventARowForOlderNodes(t *testing.T) {
	s := open(t, storetest.Postgres(t))
	if err := s.Spoil(t.Context(), "insert into nodes (name, url, version, seen) values ('older', '', '', 1)"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	task, d := newTask(t, s, 1)
	step := func(events int) {
		t.Helper()
		err := s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
			for range events {
				if err := tx.Append(t.Context(), event.Event{Type: event.Progress, DelegationID: d.ID, Actor: "kik"}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for ranges := range 2 {
		if ranges == 1 {
			if err := s.Spoil(t.Context(), "delete from nodes"); err != nil {
				t.Fatal(err)
			}
			step(1)
			positions(t, s) // whoever orders has seen that it is gone
		}
		step(5)
		last, n := positions(t, s), 0
		if err := s.Row(t.Context(), "select count(*) from event_order where length > 1").Scan(&n); err != nil || n != ranges {
			t.Errorf("%d ranges, want %d: %v", n, ranges, err)
		}
		all, err := s.Ordered(t.Context(), 0, int(last)+1)
		if err != nil || len(all) != int(last) || all[last-1].Pos != last || all[last-1].TaskID != task.ID {
			t.Errorf("%d of %d places: %v", len(all), last, err)
		}
		sealed, err := s.Seal(t.Context(), func([]byte) ([]byte, string) { return []byte("x"), "key" })
		if _, waits, none := s.Sealed(t.Context()); err != nil || none != nil || !sealed || !waits.IsZero() {
			t.Errorf("sealed %v, events wait since %v: %v, %v", sealed, waits, err, none)
		}
	}
	if n, err := s.VerifySeals(t.Context(), func([]byte, []byte, string) error { return nil }); err != nil || n != 2 {
		t.Errorf("%d seals: %v", n, err)
	}
}

// TestALeaseThatWasTakenMeanwhile: a node that waited for the lease's row while another one
// took it, ordered, and lost it again would give places that are given.
func TestALeaseThatWasTakenMeanwhile(t *testing.T) {
	at := storetest.Postgres(t)
	s, err := openAs(t, at, "one")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	newTask(t, s, 1)
	if held, err := s.Lease(t.Context(), "sequencer", "one", time.Minute); err != nil || !held {
		t.Fatal(held, err)
	}
	other, err := sql.Open("postgres", at)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, text := range []string{
		"update leases set until = until + 1 where name = 'sequencer'",
		"insert into event_order (pos, task_id, n) values (1, 'tsk_other', 1)",
	} {
		if _, err := tx.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	ordered := make(chan error, 1)
	go func() {
		_, err := s.Order(t.Context())
		ordered <- err
	}()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		if err := s.Row(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-ordered; err == nil || !strings.Contains(err.Error(), "another node orders") {
		t.Errorf("ordered: %v", err)
	}
	if n, err := s.Order(t.Context()); err != nil || n == 0 {
		t.Errorf("%d are ordered: %v", n, err)
	}
	if last := positions(t, s); last < 2 {
		t.Errorf("the last place is %d", last)
	}
}

// positions waits until everything has its place, and returns the last one.
func positions(t *testing.T, s *sqlstore.Store) (last int64) {
	t.Helper()
	for queued := 1; queued > 0; {
		if err := s.Row(t.Context(), "select (select count(*) from event_queue), (select coalesce(max(pos), 0) from event_order)").Scan(&queued, &last); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	return last
}

// TestAWayThatDropsSettings: where the server does not learn that this program counts, every
// write would be counted twice, and nothing is opened.
func TestAWayThatDropsSettings(t *testing.T) {
	u, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("gatehouse.counts_versions", "off")
	u.RawQuery = q.Encode()
	if _, err := openAs(t, u.String(), "one"); err == nil || !strings.Contains(err.Error(), "leave it out of the URL") {
		t.Errorf("open: %v", err)
	}
}
