package store_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// K13: what an agent writes on one node is read along on another, from the start of the
// turn, also where the reader came in its middle.
func TestTwoNodesShowEachOthersParts(t *testing.T) {
	url := storetest.Ready(t, storetest.Postgres(t))
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	node := func(name string) *event.Hub {
		hub := &event.Hub{}
		s, err := sqlstore.Open(ctx, url, store.Options{Node: name, Hub: hub, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
			s.Close() //nolint:errcheck // the test is over
		})
		return hub
	}
	one, two := node("one"), node("two")
	written := 0
	write := func(s string) {
		one.Pass(event.Part{TaskID: "tsk_a", DelegationID: "dlg_a", Actor: "kik", At: time.Now(), Turn: 1, Kind: "text", Text: s, Offset: written})
		written += len(s)
	}
	write("so far; ")
	l := two.Listen("tsk_a", 1000)
	defer l.Close()
	var draft event.Draft
	got := func() string {
		var b strings.Builder
		for _, p := range draft.Parts() {
			b.WriteString(p.Text)
		}
		return b.String()
	}
	until := func(want string) {
		t.Helper()
		end := time.After(30 * time.Second)
		ask := time.NewTicker(200 * time.Millisecond) // the nodes may not hear each other yet
		defer ask.Stop()
		l.SoFar()
		for got() != want {
			select {
			case p := <-l.C:
				draft.Add(p)
			case <-ask.C:
				l.SoFar()
			case <-end:
				t.Fatalf("the other node has %q, want %q", got(), want)
			}
		}
	}
	until("so far; ")
	long := strings.Repeat("<more> ", 1000) // more than one notification takes
	write(long)
	until("so far; " + long)
}
