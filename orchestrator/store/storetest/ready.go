package storetest

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/pgtest"
)

// quiet are the options of a migration that nobody reads about.
var quiet = store.Options{Logger: slog.New(slog.DiscardHandler)}

// migrated is the file of a SQLite database that has been brought to this program's
// version: under the race detector that takes a second, and a copy none.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "gatehouse-migrated-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "gatehouse.db")
	err = store.Migrate(context.Background(), "sqlite:"+file, quiet)
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	return text, errors.Join(err, os.RemoveAll(dir))
})

// Ready puts a migrated database where a SQLite address points to and nothing is yet;
// to another address it does nothing. It returns the address.
func Ready(t testing.TB, url string) string {
	t.Helper()
	file, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return url
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return url
	}
	text, err := migrated()
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatalf("a migrated database: %v", err)
	}
	return url
}

// template is a migrated database on PostgreSQL.
var template = pgtest.Template{Prepare: func(ctx context.Context, dsn string) error { return store.Migrate(ctx, dsn, quiet) }}

// Postgres is the address of a migrated database of this test's own.
func Postgres(t testing.TB) string {
	t.Helper()
	return template.DSN(t)
}
