package browser

import (
	"os"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
)

func TestMain(m *testing.M) {
	code := placetest.Main(m)
	forgetFirstDemo()
	os.Exit(code)
}
