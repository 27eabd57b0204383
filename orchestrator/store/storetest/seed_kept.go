package storetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// keptEnv names a folder where seeded databases stay, because seeding a million events
// takes minutes. The one on PostgreSQL stays on the server that GATEHOUSE_TEST_POSTGRES
// names. Remove both by hand after a migration was added: nobody else does.
const keptEnv = "GATEHOUSE_TEST_SEEDS"

// SeededSQLite is the address of a SQLite database with so many events of the last year.
func SeededSQLite(t testing.TB, events int) string {
	t.Helper()
	folder := os.Getenv(keptEnv)
	if folder == "" {
		return seeded(t, Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "seed.db")), events)
	}
	file := filepath.Join(folder, fmt.Sprintf("seed-%d.db", events))
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		unfinished := file + ".unfinished"
		seeded(t, Ready(t, "sqlite:"+unfinished), events)
		if err := os.Rename(unfinished, file); err != nil {
			t.Fatal(err)
		}
	}
	return "sqlite:" + file
}

// SeededPostgres is the same on PostgreSQL.
func SeededPostgres(t testing.TB, events int) string {
	t.Helper()
	if os.Getenv(keptEnv) == "" {
		return seeded(t, Postgres(t), events)
	}
	return template.Kept(t, fmt.Sprintf("seed_%d", events), func(dsn string) { seeded(t, dsn, events) })
}

func seeded(t testing.TB, url string, events int) string {
	t.Helper()
	t.Logf("%+v", Seed(t, url, events, time.Now()))
	return url
}
