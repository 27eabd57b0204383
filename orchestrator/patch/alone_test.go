package patch_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"gatehouse/orchestrator/patch"
)

// Two approved changes land at the same moment in a folder that somebody has open: one
// lands, the other learns that the base moved, and the folder stays clean.
func TestTwoLandingsAtOnceLeaveTheFolderClean(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	for round := range 6 {
		s.fetch()
		var intents []patch.Intent
		for i := range 3 {
			intents = append(intents, s.mustPlan(s.changed(files{fmt.Sprintf("r%d-%d.txt", round, i): "x\n"})))
		}
		errs := make([]error, len(intents))
		var landing sync.WaitGroup
		for i, in := range intents {
			landing.Go(func() { errs[i] = s.m.Land(s.ctx, in, nil) })
		}
		landing.Wait()
		landed := 0
		for _, err := range errs {
			var moved *patch.Moved
			switch {
			case err == nil:
				landed++
			case !errors.As(err, &moved):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if landed != 1 {
			t.Errorf("round %d: %d landed", round, landed)
		}
		equal(t, "the folder's status", git(t, s.source, "status", "--porcelain"), "")
	}
}
