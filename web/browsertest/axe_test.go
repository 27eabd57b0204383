package browsertest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

func TestAxeIsTheFileOfThePublishedPackage(t *testing.T) {
	body, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("testdata/axe/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	if !strings.HasPrefix(string(sums), hex.EncodeToString(sum[:])+"  axe.min.js") {
		t.Errorf("axe.min.js has another sum than %s", sums)
	}
}
