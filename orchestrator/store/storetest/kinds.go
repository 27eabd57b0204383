package storetest

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
)

// Both runs a story in which the database decides: crashes, leases, several nodes, many
// at once, queries. It runs on a new, migrated database of each kind.
func Both(t *testing.T, story func(t *testing.T, url string)) {
	t.Helper()
	sqlite(t, story)
	postgres(t, story)
}

// Either runs a story in which the database decides nothing on one kind, always the same
// for a test: about half of the stories are on each. GATEHOUSE_TEST_SQUARE=1 makes it Both.
func Either(t *testing.T, story func(t *testing.T, url string)) {
	t.Helper()
	name := fnv.New32a()
	_, _ = name.Write([]byte(t.Name())) // a hash takes everything
	switch {
	case os.Getenv("GATEHOUSE_TEST_SQUARE") == "1":
		Both(t, story)
	case name.Sum32()%2 == 0:
		sqlite(t, story)
	default:
		postgres(t, story)
	}
}

func sqlite(t *testing.T, story func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { story(t, Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"))) })
}

func postgres(t *testing.T, story func(t *testing.T, url string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) { story(t, Postgres(t)) })
}
