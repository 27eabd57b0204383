package store_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/pgtest"
	"gatehouse/orchestrator/store/storetest"
)

func TestNodesThatStartAtOnce(t *testing.T) {
	bothEmpty(t, func(t *testing.T, url string) {
		const n = 6
		stores, errs := make([]*sqlstore.Store, n), make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { stores[i], errs[i] = sqlstore.Open(t.Context(), url, store.Options{Pool: 3}) })
		}
		wg.Wait()
		for i := range n {
			if errs[i] != nil {
				t.Errorf("node %d: %v", i, errs[i])
				continue
			}
			have, know, err := stores[i].Version(t.Context())
			if err != nil || have != know || have < 5 {
				t.Errorf("node %d: version %d of %d, %v", i, have, know, err)
			}
			newTask(t, stores[i], 1)
			if err := stores[i].Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestNewerDatabase(t *testing.T) {
	bothEmpty(t, func(t *testing.T, url string) {
		s := open(t, url)
		if err := s.Spoil(t.Context(), "insert into goose_db_version (version_id, is_applied) values (999, "+map[string]string{"SQLite": "1", "PostgreSQL": "true"}[s.Dialect()]+")"); err != nil {
			t.Fatal(err)
		}
		_, err := sqlstore.Open(t.Context(), url, store.Options{})
		var newer *store.NewerError
		if !errors.As(err, &newer) || newer.Have != 999 || !strings.Contains(err.Error(), "run the newer gatehouse") {
			t.Errorf("open: %v", err)
		}
	})
}

func TestMigrateAlone(t *testing.T) {
	bothEmpty(t, func(t *testing.T, url string) {
		for range 2 { // the second time there is nothing to do
			if err := store.Migrate(t.Context(), url, store.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		newTask(t, open(t, url), 1)
	})
}

// TestFilledDatabaseMoves: a database of version 44 with tasks, requests and events moves to
// today's, nothing of it changes, and its tasks go on.
func TestFilledDatabaseMoves(t *testing.T) {
	bothEmpty(t, func(t *testing.T, url string) {
		ctx := t.Context()
		made := storetest.Seed(t, storetest.At(t, url, 44), 3000, now())
		s := open(t, url)
		n, err := s.VerifyAll(ctx, func(id string, err error) { t.Errorf("%s: %v", id, err) })
		if err != nil || n < made.Tasks {
			t.Errorf("%d of %d chains are sound: %v", n, made.Tasks, err)
		}
		page, err := s.List(ctx, orchestrator.Filter{Limit: 8})
		if err != nil || len(page.Items) < 8 {
			t.Fatalf("%d delegations, %v", len(page.Items), err)
		}
		for _, d := range page.Items {
			goOn(t, s, d)
		}
		var wrong int
		if err := s.Row(ctx, storetest.Unlisted).Scan(&wrong); err != nil || wrong != 0 {
			t.Errorf("%d delegations are not listed as they are: %v", wrong, err)
		}
		found, err := s.List(ctx, orchestrator.Filter{Query: "word37", Limit: 8})
		if err != nil || len(found.Items) == 0 {
			t.Errorf("%d delegations have a word: %v", len(found.Items), err)
		}
	})
}

// TestColumnsKeepTheirValues: delegations are copied into a table whose columns stand in
// another order, and each value comes under its own name.
func TestColumnsKeepTheirValues(t *testing.T) {
	url := storetest.At(t, storetest.EmptyPostgres(t), 44)
	storetest.Seed(t, url, 300, now())
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	values := func() (all string) {
		t.Helper()
		const text = "select string_agg((to_jsonb(d) - 'words')::text, e'\n' order by id) from delegations d"
		if err := db.QueryRowContext(t.Context(), text).Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := values()
	if err := store.Migrate(t.Context(), url, store.Options{}); err != nil {
		t.Fatal(err)
	}
	if after := values(); after != before || before == "" {
		t.Errorf("%d bytes of rows became others, of %d", len(before), len(after))
	}
}

// goOn takes a step on a delegation and finds all of it there.
func goOn(t *testing.T, s *sqlstore.Store, d orchestrator.Delegation) {
	t.Helper()
	ctx := t.Context()
	before, err := s.Task(ctx, d.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one from memory
		err := s.InTask(ctx, d.TaskID, func(tx orchestrator.Tx) error {
			row, err := tx.Delegation(ctx, d.ID)
			if err != nil {
				return err
			}
			row.Losses++
			tx.Task().Handoffs++
			if err := tx.Move(ctx, row, d.State, d.Attempt); err != nil {
				return err
			}
			return tx.Append(ctx, event.Event{Type: event.Progress, DelegationID: d.ID, Actor: "kik"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Task(ctx, d.TaskID)
	if err != nil || after.Handoffs != before.Handoffs+2 || after.LastN != before.LastN+2 {
		t.Errorf("%s went from %d to %d, %v", d.TaskID, before.LastN, after.LastN, err)
	}
	if got, err := s.Delegation(ctx, d.ID); err != nil || got.Losses != d.Losses+2 || got.Text != d.Text {
		t.Errorf("%s lost %d times: %v", d.ID, got.Losses, err)
	}
	if err := s.VerifyTask(ctx, d.TaskID); err != nil {
		t.Error(err)
	}
}

func TestOpenSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, url, want string }{
		{"an unknown kind", "mysql://u:secret@h/d", "use sqlite:./gatehouse.db or postgres://"},
		{"no path", "sqlite:", "use sqlite:./gatehouse.db"},
		{"a missing folder", "sqlite:" + dir + "/none/g.db", "does not exist: make it"},
		{"a folder", "sqlite:" + dir, "is a folder"},
		{"another file", "sqlite:" + text, "is not an SQLite database"},
		{"nobody there", "postgres://u:secret@127.0.0.1:1/d", "PostgreSQL at 127.0.0.1:1 does not answer"},
		{"a broken URL", "postgres://u:secret%@h/d", "%XX"},
		{"an unknown parameter", "postgres://u:secret@h/d?sslmode=maybe", "check its parameters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := sqlstore.Open(t.Context(), c.url, store.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestPostgresSaysWhatToDo(t *testing.T) {
	dsn := pgtest.DSN(t)
	at := strings.LastIndex(dsn, "/t_")
	for _, c := range []struct{ name, url, want string }{
		{"no such database", dsn[:at] + "/none?sslmode=disable", `has no database "none"`},
		{"a wrong password", strings.Replace(dsn, "@", "x@", 1), "refuses the user"},
	} {
		if _, err := sqlstore.Open(t.Context(), c.url, store.Options{}); err == nil || !strings.Contains(err.Error(), c.want) || orchestrator.CodeOf(err) != orchestrator.CodeUnavailable {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestLockedFile(t *testing.T) {
	url := sqliteURL(t)
	s := open(t, url)
	task, _ := newTask(t, s, 1)
	done := make(chan error)
	err := s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
		if err := tx.PutBlob(t.Context(), "blob", "text", []byte("x")); err != nil { // it holds the file now
			return err
		}
		// Another program's writer waits for this one, and gives up.
		go func() {
			other, err := sqlstore.Open(t.Context(), url, store.Options{})
			if err == nil {
				_, _, err = other.NewTask(t.Context(), orchestrator.Task{ID: "tsk_x"}, func(orchestrator.Tx) error { return nil })
				err = errors.Join(err, other.Close())
			}
			done <- err
		}()
		err := <-done
		if err == nil || !strings.Contains(err.Error(), "locked by another program") {
			t.Errorf("error %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPathsWithSigns(t *testing.T) {
	for _, name := range []string{"a b.db", "50%.db", "what?.db", "a#b.db", "größe.db", "%41.db"} {
		path := filepath.Join(t.TempDir(), name)
		newTask(t, open(t, "sqlite:"+path), 1)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
