package store_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

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
