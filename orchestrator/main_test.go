package orchestrator_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the tests when a goroutine of theirs is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
