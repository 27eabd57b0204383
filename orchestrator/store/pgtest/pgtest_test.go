package pgtest_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/store/pgtest"
)

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec1(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func count(t *testing.T, db *sql.DB, query string, args ...any) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	first, second := pgtest.DSN(t), pgtest.DSN(t)
	if first == second {
		t.Fatal("two calls gave the same database")
	}
	exec1(t, open(t, first), "create table seen (n int)")
	if n := count(t, open(t, second), "select count(*) from information_schema.tables where table_name = 'seen'"); n != 0 {
		t.Fatal("a table of the first database shows in the second")
	}
}

func TestADatabaseIsDroppedWithItsTestEvenWhileConnected(t *testing.T) {
	var name string
	outer := t
	t.Run("inner", func(t *testing.T) {
		db := open(outer, pgtest.DSN(t)) // so its connections are still open when the inner test ends
		if err := db.QueryRowContext(t.Context(), "select current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	if n := count(t, open(t, pgtest.DSN(t)), "select count(*) from pg_database where datname = $1", name); n != 0 {
		t.Fatalf("database %s outlived its test", name)
	}
}

func TestATemplateIsPreparedOnceAndCopied(t *testing.T) {
	prepared := 0
	tpl := pgtest.Template{Prepare: func(ctx context.Context, dsn string) error {
		prepared++
		db, err := sql.Open("postgres", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.ExecContext(ctx, "create table fruit (name text); insert into fruit values ('plum')")
		return err
	}}
	first, second := open(t, tpl.DSN(t)), open(t, tpl.DSN(t))
	exec1(t, first, "insert into fruit values ('pear')")
	if a, b := count(t, first, "select count(*) from fruit"), count(t, second, "select count(*) from fruit"); a != 2 || b != 1 {
		t.Fatalf("rows = %d and %d, want 2 and 1", a, b)
	}
	if prepared != 1 {
		t.Fatalf("prepared %d times", prepared)
	}
}

func TestAStoppedServerComesBackWithItsData(t *testing.T) {
	s := pgtest.NewServer(t, pgtest.Durable)
	db := open(t, s.URL("postgres"))
	exec1(t, db, "create table kept (n int); insert into kept values (7)")

	s.Stop()
	if err := db.PingContext(t.Context()); err == nil {
		t.Fatal("a stopped server answered")
	}
	u, err := url.Parse(s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.DialTimeout("tcp", u.Host, time.Second); err == nil {
		_ = conn.Close()
		t.Fatal("a stopped server still listens")
	}

	s.Start(t)
	if n := count(t, open(t, s.URL("postgres")), "select n from kept"); n != 7 {
		t.Fatalf("n = %d after the restart", n)
	}
}

func TestDurabilityIsAChoice(t *testing.T) {
	for _, tc := range []struct {
		want string
		opts []pgtest.Option
	}{{"off", nil}, {"on", []pgtest.Option{pgtest.Durable}}} {
		db := open(t, pgtest.NewServer(t, tc.opts...).URL("postgres"))
		var fsync string
		if err := db.QueryRowContext(t.Context(), "show fsync").Scan(&fsync); err != nil {
			t.Fatal(err)
		}
		if fsync != tc.want {
			t.Errorf("fsync = %s, want %s", fsync, tc.want)
		}
		if n := count(t, db, "select setting::int from pg_settings where name = 'max_connections'"); n != 300 {
			t.Errorf("max_connections = %d", n)
		}
	}
}

const childEnv = "PGTEST_CHILD"

// TestAServerDiesWithAKilledProcess runs this test binary again, kills it and looks for what it left.
func TestAServerDiesWithAKilledProcess(t *testing.T) {
	if os.Getenv(childEnv) == "1" {
		s := pgtest.NewServer(t)
		fmt.Printf("\nserver %s\n", s.URL("postgres"))
		<-t.Context().Done() // never: the parent kills this process
		return
	}
	if _, err := pgtest.Installed(); err != nil {
		pgtest.NewServer(t) // says why, in the words of all other tests
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAServerDiesWithAKilledProcess$")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dsn string
	for lines := bufio.NewScanner(out); dsn == "" && lines.Scan(); {
		if address, found := strings.CutPrefix(lines.Text(), "server "); found {
			dsn = address
		}
	}
	if dsn == "" {
		_ = cmd.Wait()
		t.Fatal("the child started no server")
	}
	var data string
	db := open(t, dsn)
	if err := db.QueryRowContext(t.Context(), "show data_directory").Scan(&data); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed", as meant
	dir := filepath.Dir(data)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(30 * time.Second); ; {
		_, err := os.Stat(dir)
		if os.IsNotExist(err) {
			break
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s is still there 30 s after its process was killed", dir)
		}
	}
	if db := open(t, dsn); db.PingContext(t.Context()) == nil {
		t.Fatal("the server outlived its process")
	}
}
