package insight_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/orchestrator/record/insight"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// One node counts at a time; when its lease is over, another goes on where the sums are.
func TestOneNodeCountsAll(t *testing.T) {
	url := storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"))
	made := storetest.Seed(t, url, 3000, time.Now())
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(t.Context(), url, store.Options{Node: "one", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test is over
	behind := func() int64 {
		state, err := s.InsightState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return state.Behind
	}
	if got := behind(); got != int64(made.Events) {
		t.Fatalf("%d of %d events are to be counted", got, made.Events)
	}
	if mine, err := s.Lease(t.Context(), "insight", "two", time.Minute); !mine || err != nil {
		t.Fatal(mine, err)
	}
	one := insight.Counter{Store: s, Node: "one", Grown: func() <-chan struct{} { return s.Grown().Changed() }, Log: log}
	if err := one.All(t.Context()); err != nil || behind() != int64(made.Events) {
		t.Errorf("a node without the lease counted: %v", err)
	}
	two := one
	two.Node = "two"
	if err := two.All(t.Context()); err != nil || behind() != 0 {
		t.Errorf("%d events are not counted: %v", behind(), err)
	}
}
