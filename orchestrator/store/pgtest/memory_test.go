package pgtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a killed process left in memory is removed by the next one, and what lives stays.
func TestFoldersOfTheDeadAreRemoved(t *testing.T) {
	if !roomy(memory) {
		t.Log("there is no room in memory, so no folder is made in it")
		return
	}
	dead, err := os.MkdirTemp(memory, prefix+"2147483647-") // no process has this number
	if err != nil {
		t.Fatal(err)
	}
	mine, err := folder()
	if err != nil {
		t.Logf("no program can be run in memory: %v", err)
		return
	}
	defer os.RemoveAll(mine)
	again, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(again)
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dead, err)
	}
	if left, err := os.ReadDir(mine); err != nil || len(left) > 0 || !strings.HasPrefix(filepath.Base(mine), prefix) {
		t.Errorf("%s has %v: %v", mine, left, err)
	}
}
