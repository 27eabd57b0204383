package orchestrator_test

import (
	"testing"

	"gatehouse/orchestrator/store/pgtest"

	"go.uber.org/goleak"
)

// TestMain fails the tests when a goroutine of theirs is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.InMemory(m)) }
