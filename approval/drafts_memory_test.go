package approval_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

// shelf has any file, each of 8 MB, and looks how much is held while the next is read.
type shelf struct {
	approval.Reviser
	most *uint64
}

func (s shelf) ReadFile(context.Context, string, orchestrator.Order, bool, string, int64) ([]byte, bool, error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	*s.most = max(*s.most, m.HeapAlloc)
	return bytes.Repeat([]byte("a line of forty characters in this file\n"), 8<<20/40), true, nil
}

// Comments on many large files are placed without holding all of them.
func TestCommentsOnManyLargeFilesDoNotHoldThemAll(t *testing.T) {
	w := newWorld(t, approval.Config{})
	var most uint64
	w.g.SetReviser(shelf{most: &most})
	b := ballot(w.asked(), "bob", approval.RequestChanges)
	for i := range 40 {
		b.Comments = append(b.Comments, agent.LineComment{Path: fmt.Sprint("file", i), Line: 1, Text: "no"})
	}
	w.decide(b)
	if most > 200<<20 {
		t.Errorf("%d MB were held", most>>20)
	}
}

// The diff that goes with a request for changes is bounded: it is kept in the row of the
// delegation, which is read again and again.
func TestAnEndlessDiffIsCutForTheAgent(t *testing.T) {
	w := newWorld(t, approval.Config{})
	w.g = approval.New(approval.Options{Store: w.db, Users: team(staff()), Now: w.clock.now,
		Diff: func(context.Context, approval.Request) (string, error) {
			return strings.Repeat("+ünd so weiter\n", 1<<19), nil
		}}, w.g.Config())
	r := w.asked()
	w.decide(ballot(r, "bob", approval.RequestChanges))
	got := w.delegation(r.DelegationID).Work.Feedback.Diff
	if len(got) > 1<<20+100 || !strings.Contains(got, "weiter\n… cut here: ") || !utf8.ValidString(got) {
		t.Errorf("%d bytes, ends %q", len(got), got[len(got)-100:])
	}
}
