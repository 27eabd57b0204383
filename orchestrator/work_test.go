package orchestrator

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// A row that was stored before Work had parts is read as it was meant, and written again
// with the same keys.
func TestStoredWorkHasTheKeysOfBefore(t *testing.T) {
	row, err := os.ReadFile("testdata/work.json")
	if err != nil {
		t.Fatal(err)
	}
	var w Work
	if err := json.Unmarshal(row, &w); err != nil {
		t.Fatal(err)
	}
	if w.Runs != 7 || w.Terms.Epoch != 7 || w.Base.Stand.BaseTree != "x" || w.Session.Checkpoint == nil || w.Product.Tree != "x" || w.Provenance.Sandbox != "x" ||
		w.ToLand.Land == nil || w.Rounds.Revision != 7 || !w.Waits.ProcessWait || w.Account.Budget == nil {
		t.Errorf("the parts of the row are %+v", w)
	}
	again, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var was, is map[string]any
	if err := json.Unmarshal(row, &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &is); err != nil {
		t.Fatal(err)
	}
	for key, want := range was {
		if !reflect.DeepEqual(is[key], want) {
			t.Errorf("%s is %v, and was %v", key, is[key], want)
		}
	}
	if len(is) != len(was) || len(was) < 40 {
		t.Errorf("the row has %d keys, and had %d", len(is), len(was))
	}
	if empty, err := json.Marshal(Work{}); err != nil || string(empty) != "{}" {
		t.Errorf("no work is %s %v", empty, err)
	}
}
