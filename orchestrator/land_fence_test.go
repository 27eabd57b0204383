package orchestrator_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator"
)

// Between its intent and its push a node may sleep for longer than its lease: it finds that
// out right before it pushes, and steps back with nothing done. Whoever has the landing then
// goes on from the intent, and it lands once.
func TestANodeThatSleptPastItsLeasePushesNothing(t *testing.T) {
	for what, sleep := range map[string]func(w *world, id string){
		"its lease ran out": func(w *world, _ string) { w.pass(2 * w.config.Settings.Lease) },
		"another node has it": func(w *world, id string) {
			w.elsewhere(id, "another", w.now().Add(2*time.Hour))
		},
	} {
		t.Run(what, func(t *testing.T) {
			databases(t, func(t *testing.T, url string) {
				w := newWorld(t, url, specs("coder")...)
				w.config.Settings.Lease = time.Hour // a node that renews it meanwhile may push
				w.script("coder", writes("new.txt", "new\n"))
				main := w.git("rev-parse", "main")
				var root orchestrator.Delegation
				known, slept := make(chan struct{}), make(chan struct{})
				var mu sync.Mutex
				var points []string
				w.trace = func(point string) {
					mu.Lock()
					defer mu.Unlock()
					if points = append(points, point); point != "intent committed" {
						return
					}
					points = points[len(points)-1:]
					<-known
					sleep(w, root.ID)
					close(slept)
				}
				w.start()
				root = w.send("coder", "write")
				close(known)
				w.approve(w.request(root.TaskID, 1))
				<-slept
				if what == "another node has it" {
					time.Sleep(500 * time.Millisecond) // long enough for a push
					if now := w.git("rev-parse", "main"); now != main {
						t.Errorf("main moved to %s by a node that had lost the landing", now)
					}
					w.elsewhere(root.ID, "another", w.now().Add(-time.Second)) // and goes away
				}
				d := w.state(root.ID, orchestrator.Completed)
				mu.Lock()
				defer mu.Unlock()
				if want := []string{"intent committed", "claimed", "ref moved"}; len(points) < 3 || !slices.Equal(points[:3], want) {
					t.Errorf("what happened from the intent on: %v; want %v", points, want)
				}
				if merges := w.git("log", "--merges", "--format=%H", "main"); merges != d.Result.Commit || strings.Contains(merges, "\n") {
					t.Errorf("merges %q, and it landed as %s\n%s", merges, d.Result.Commit, w.history(root.TaskID))
				}
			})
		})
	}
}

// elsewhere gives the row of a delegation to another node, with a lease until then.
func (w *world) elsewhere(id, node string, until time.Time) {
	w.must(w.store.InTask(w.t.Context(), w.delegation(id).TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(w.t.Context(), id)
		if err != nil {
			return err
		}
		was := d.Attempt
		if d.Holder != node {
			d.Attempt++
		}
		d.Holder, d.LeaseUntil = node, until
		return tx.Move(w.t.Context(), d, d.State, was)
	}))
}
