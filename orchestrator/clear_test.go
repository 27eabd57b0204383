package orchestrator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gatehouse/orchestrator"
)

// TestANodeStartsWhileAnOrphanStillWrites: git of a server that was killed goes on for a
// moment and fills the folder that the next start removes. The node starts and works.
func TestANodeStartsWhileAnOrphanStillWrites(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", writes("core/a.txt", "agent\n"))
		left := filepath.Join(w.data, "runs", "dlg_of_before-1", "checkout")
		stop := make(chan struct{})
		var orphan sync.WaitGroup
		orphan.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					_ = os.MkdirAll(left, 0o700) // it may be removed at any moment
					_ = os.WriteFile(filepath.Join(left, fmt.Sprint(i%100)), nil, 0o600)
				}
			}
		})
		defer orphan.Wait()
		defer close(stop)
		w.start()
		root := w.send("coder", "go")
		w.approve(w.request(root.TaskID, 1))
		w.state(root.ID, orchestrator.Completed)
	})
}
