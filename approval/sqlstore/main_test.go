package sqlstore_test

import (
	"os"
	"testing"

	"gatehouse/orchestrator/store/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.InMemory(m).Run()) }
