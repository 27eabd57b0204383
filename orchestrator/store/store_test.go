package store_test

import (
	"path/filepath"
	"testing"

	"gatehouse/orchestrator/store/storetest"
)

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "gate house.db") }

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) string { return storetest.Ready(t, sqliteURL(t)) })
}

func TestPostgres(t *testing.T) {
	storetest.Run(t, func(t testing.TB) string { return storetest.Postgres(t) })
}
