package bench

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// A measurement has a database of its own beside the one that is named, on both kinds, and
// leaves nothing there. What it counts is what the engine does: six commits for a chain.
func TestAMeasurementHasADatabaseOfItsOwn(t *testing.T) {
	for name, at := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db") },
		"postgres": func(t *testing.T) string { return storetest.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			named := at(t)
			scratch, drop, err := store.Scratch(t.Context(), named)
			if err != nil {
				t.Fatal(err)
			}
			if scratch == named {
				t.Fatal("the database that was named is the one that is measured")
			}
			measure(t, scratch)
			if err := drop(context.Background()); err != nil {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(named[len("sqlite:"):]), "*")); name == "sqlite" && len(left) > 0 {
				t.Errorf("%v is left", left)
			}
			if _, err := store.NewYardstick(t.Context(), scratch); err == nil {
				t.Error("the database of the measurement is still there")
			}
		})
	}
}

func measure(t *testing.T, url string) {
	t.Helper()
	n, err := Start(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	chains, err := n.Chains(t.Context(), 10, 2)
	if err != nil || chains.Chains != 10 || chains.Commits != 6 || chains.Pace <= 0 || chains.Bare <= 0 || chains.TimesBare <= 0 {
		t.Errorf("chains: %+v, %v", chains, err)
	}
	statements := 0.0
	for _, k := range chains.Kinds {
		statements += k.Statements
	}
	if statements < 6 || statements > chains.Statements+1 || statements < chains.Statements-1 {
		t.Errorf("%v of %v statements have a kind: %+v", statements, chains.Statements, chains.Kinds)
	}
	for _, k := range chains.Kinds { // whoever waits is told, and what a claim reads comes with its write
		switch most := 2.0; {
		case k.Name == "select delegations" && k.Statements > most:
			t.Errorf("%v reads of delegations a chain, want at most %v", k.Statements, most)
		case strings.HasPrefix(url, "postgres:") && (k.Name == "select breakers" || k.Name == "select agent_shared_context") && k.Statements > 1:
			t.Errorf("%v times %s a chain", k.Statements, k.Name)
		}
	}
	parked, err := n.Parked(t.Context(), 30)
	if err != nil || parked.Questions != 30 || parked.ResumeMS <= 0 || parked.Bytes < 1000 {
		t.Errorf("parked: %+v, %v", parked, err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// What keeps a measurement from beginning says what to do.
func TestAMeasurementThatCannotBegin(t *testing.T) {
	for _, at := range []string{"mysql://x", "sqlite:" + filepath.Join(t.TempDir(), "no", "folder", "x.db"), "postgres://nobody@127.0.0.1:1/x"} {
		if _, _, err := store.Scratch(t.Context(), at); err == nil {
			t.Errorf("%s was taken", at)
		}
	}
}
