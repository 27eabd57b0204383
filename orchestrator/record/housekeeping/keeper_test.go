package housekeeping

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// Of two nodes one seals, sweeps and removes; each forgets for itself, once a day. Retention goes on until nothing is
// left.
func TestOneNodeKeepsHouse(t *testing.T) {
	url := storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"))
	storetest.Seed(t, url, 500, time.Now())
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(t.Context(), url, store.Options{Node: "one", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test is over
	type done struct{ swept, retained, forgot, alive, left atomic.Int64 }
	keeper := func(node string) (*Keeper, *done) {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		var d done
		return &Keeper{Store: s, Node: node, Key: key, Log: log, Every: 10 * time.Millisecond,
			Sweep:  func(context.Context, time.Time) error { d.swept.Add(1); return nil },
			Retain: func(context.Context, time.Time) (bool, error) { return d.retained.Add(1) < 3, nil },
			Forget: func(context.Context) error { d.forgot.Add(1); return nil },
			Alive:  func(context.Context) error { d.alive.Add(1); return nil },
			Leave:  func(context.Context) { d.left.Add(1) }}, &d
	}
	if mine, err := s.Lease(t.Context(), lease, "one", time.Minute); !mine || err != nil {
		t.Fatal(mine, err)
	}
	one, first := keeper("one")
	two, second := keeper("two")
	one.Every = time.Second // its lease stays longer than the test runs
	for range 6 {
		for _, k := range []*Keeper{one, two} {
			if err := k.once(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, c := range map[string]struct{ got, want int64 }{
		"sweeps of the first": {first.swept.Load(), 1}, "of the second": {second.swept.Load(), 0},
		"removals of the first": {first.retained.Load(), 3}, "removals of the second": {second.retained.Load(), 0},
		"mirrors of the first": {first.forgot.Load(), 1}, "mirrors of the second": {second.forgot.Load(), 1},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", what, c.got, c.want)
		}
	}
	if keys, err := s.SealKeys(t.Context()); err != nil || len(keys) != 2 {
		t.Errorf("%d keys are known, want 2: %v", len(keys), err)
	}
	if last, _, err := s.Sealed(t.Context()); err != nil || last.IsZero() {
		t.Errorf("nothing was sealed: %v", err)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- two.Run(ctx) }()
	for second.alive.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil || second.left.Load() != 1 {
		t.Errorf("it left %d times: %v", second.left.Load(), err)
	}
}
