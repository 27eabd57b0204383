package cli

import (
	"os"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
)

func TestMain(m *testing.M) { os.Exit(placetest.Main(m)) }
