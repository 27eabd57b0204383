package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	sharedEnv = "GATEHOUSE_TEST_POSTGRES"
	allEnv    = "GATEHOUSE_TEST_ALL"

	statementLimit = 60 * time.Second
)

// A testbed is the server on which every test of this process has its databases.
type testbed struct {
	admin string  // the URL of a database from which others can be made
	own   *Server // nil when the server is somebody else's; held so that its pipe stays open
}

// shared starts at the first test that asks. Nobody closes it: the keeper cleans up when the process is gone.
var shared = sync.OnceValues(func() (testbed, error) {
	if address := os.Getenv(sharedEnv); address != "" {
		return testbed{admin: address}, nil
	}
	s, err := Launch()
	if err != nil {
		return testbed{}, err
	}
	return testbed{admin: s.URL("postgres"), own: s}, nil
})

// DSN makes an empty database for this test and returns its URL; the database is dropped when the test ends. It skips
// the test when PostgreSQL is not installed, or fails it when GATEHOUSE_TEST_ALL is 1.
func DSN(t testing.TB) string {
	t.Helper()
	return create(t, "template0")
}

// A Template is a database that is prepared once for each test binary and copied for each test, which is cheaper than
// preparing it each time. Keep it in a package variable.
type Template struct {
	// Prepare fills an empty database, say with the migrations, and closes every connection it opened.
	Prepare func(ctx context.Context, dsn string) error

	once sync.Once
	name string
	err  error
}

// DSN is [DSN] with a copy of the template in place of an empty database.
func (tpl *Template) DSN(t testing.TB) string {
	t.Helper()
	admin := serverURL(t)
	tpl.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), statementLimit)
		defer cancel()
		name := databaseName("tpl")
		if tpl.err = execute(ctx, admin, "create database "+name+" template template0"); tpl.err != nil {
			return
		}
		tpl.name = name
		tpl.err = tpl.Prepare(ctx, withDatabase(admin, name))
	})
	if tpl.err != nil {
		t.Fatalf("prepare the template database: %v", tpl.err)
	}
	return create(t, tpl.name)
}

func create(t testing.TB, template string) string {
	t.Helper()
	admin := serverURL(t)
	name := databaseName("t")
	ctx, cancel := context.WithTimeout(context.Background(), statementLimit)
	defer cancel()
	if err := execute(ctx, admin, "create database "+name+" template "+template); err != nil {
		t.Fatalf("make a database for this test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), statementLimit)
		defer cancel()
		if err := execute(ctx, admin, "drop database if exists "+name+" with (force)"); err != nil {
			t.Errorf("drop this test's database: %v", err)
		}
	})
	return withDatabase(admin, name)
}

func serverURL(t testing.TB) string {
	t.Helper()
	bed, err := shared()
	if err != nil {
		unavailable(t, err)
	}
	return bed.admin
}

func unavailable(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrNotInstalled) && os.Getenv(allEnv) != "1" {
		t.Skipf("needs PostgreSQL: %v", err)
	}
	t.Fatal(err)
}

// execute uses a connection of its own and closes it: a pool left open would look like a leak to the tests.
func execute(ctx context.Context, dsn, statement string) error {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return fmt.Errorf("open PostgreSQL: %w", err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// databaseName is unique on a server that many test binaries share, and safe to write into a statement as it is.
func databaseName(prefix string) string {
	return prefix + "_" + strings.ToLower(rand.Text()[:16])
}

func withDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // the driver took it a moment ago, so it parses
	}
	u.Path = "/" + name
	return u.String()
}

// Kept is a copy of the template of this name that stays on the server when the test has
// ended: a later test gets it as it was left. It needs a server that stays, too, which
// GATEHOUSE_TEST_POSTGRES names. fill is called once, with a copy that nobody finds before
// it has returned.
func (tpl *Template) Kept(t testing.TB, name string, fill func(dsn string)) string {
	t.Helper()
	admin := serverURL(t)
	ctx, cancel := context.WithTimeout(context.Background(), statementLimit)
	defer cancel()
	db, err := sql.Open("postgres", withDatabase(admin, name))
	if err != nil {
		t.Fatal(err)
	}
	err = db.PingContext(ctx)
	if closing := db.Close(); err == nil && closing == nil {
		return withDatabase(admin, name)
	}
	unfinished := tpl.DSN(t)
	fill(unfinished) // which may take many minutes
	u, err := url.Parse(unfinished)
	if err == nil {
		err = execute(context.WithoutCancel(ctx), admin, "alter database "+strings.TrimPrefix(u.Path, "/")+" rename to "+name)
	}
	if err != nil {
		t.Fatalf("keep the database: %v", err)
	}
	return withDatabase(admin, name)
}
