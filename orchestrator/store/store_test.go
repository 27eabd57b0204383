package store_test

import (
	"path/filepath"
	"testing"
)

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "gate house.db") }
