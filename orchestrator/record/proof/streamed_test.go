package proof

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"gatehouse/orchestrator/record/event"
)

// manyOf is a bundle of more tasks than a seal lists, with checkpoints as lines.
func manyOf(t *testing.T, all []event.Event, proofs ...Proof) []string {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, Filtered)
	for _, e := range all {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if !w.Many() {
		t.Fatal("these are not many")
	}
	for _, p := range proofs {
		if err := w.Checkpoint(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Seal(serverKey, sealedAt, nil); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// A bundle of many tasks has its checkpoints as lines, and every task is held against them.
func TestABundleOfManyTasksHasItsCheckpointsAsLines(t *testing.T) {
	ids := make([]string, MaxListed+5)
	for i := range ids {
		ids[i] = fmt.Sprintf("tsk_%04d", i)
	}
	all := historyOf(2, nil, ids...)
	early, late := all[:len(ids)], all[len(ids):]
	lines := manyOf(t, all, proofOf(serverKey, late), proofOf(serverKey, early))
	r := verifyLines(t, lines)
	if !r.OK() || r.Version != 3 || r.Events != len(all) || r.Tasks != len(ids) || r.Covered != len(ids) {
		t.Errorf("%+v", r)
	}
	anew := append([]event.Event{}, all...)
	for i, e := range anew {
		if e.TaskID == ids[7] {
			anew[i].Actor = "mallory"
			prev := ""
			if e.N > 1 {
				prev = anew[i-len(ids)].Hash
			}
			anew[i].Seal(prev)
		}
	}
	forged := proofOf(otherKey, all)
	forged.KeyID = Fingerprint(proofOf(serverKey, all).Key)
	other := append([]string{}, lines...)
	other[len(all)], other[len(all)+1] = other[len(all)+1], other[len(all)]
	for name, c := range map[string]struct {
		lines []string
		says  string
	}{
		"history that was written anew": {manyOf(t, anew, proofOf(serverKey, late)), "n 2 of tsk_0007 is not the event that the checkpoint"},
		"a forged checkpoint":           {manyOf(t, all, forged), "signature of the checkpoint"},
		"one that was removed":          {append(append([]string{}, lines[:len(all)]...), lines[len(all)+1:]...), "a line was changed"},
		"two that were exchanged":       {other, "a line was changed"},
		"one that is torn":              {append(append([]string{}, lines[:len(all)]...), lines[len(all)][:90], lines[len(lines)-1]), "is no event"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range verifyLines(t, c.lines).Problems {
				if strings.Contains(p.Message, c.says) {
					return
				}
			}
			t.Errorf("%+v, want %q", verifyLines(t, c.lines), c.says)
		})
	}
}
