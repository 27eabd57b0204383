package patch_test

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

// What belongs to a delegation that is gone leaves the mirror with its branch; what others
// keep stays and can be shown.
func TestTheMirrorForgetsWhatIsGone(t *testing.T) {
	s := given(t, files{"a.txt": "one\n"})
	old, young := "dlg_"+strings.Repeat("0", 26), "dlg_"+strings.Repeat("1", 26)
	keep := func(id, text string) (patch.Revision, string) {
		tree := s.changed(files{"a.txt": text})
		rev, err := s.m.Record(s.ctx, patch.RecordSpec{Key: id + "-abc", Base: s.base.Commit, Tree: tree, Title: text, Task: "tsk_1", Delegation: id, Agent: "coder", Digest: "d", At: at})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.m.SaveTree(s.ctx, id+"-kept-0", s.base.Commit, tree, at); err != nil {
			t.Fatal(err)
		}
		return rev, tree
	}
	oldRev, _ := keep(old, "two\n")
	youngRev, youngTree := keep(young, "three\n")
	var asked []string
	gone := func(ids []string) (map[string]bool, error) {
		asked = slices.Sorted(slices.Values(ids))
		return map[string]bool{old: true}, nil
	}
	n, err := s.m.Forget(s.ctx, gone)
	if err != nil || n != 3 || !slices.Equal(asked, []string{old, young}) {
		t.Errorf("%d refs went, %v; asked for %v", n, err, asked)
	}
	if n, err := s.m.Forget(s.ctx, gone); err != nil || n != 0 || !slices.Equal(asked, []string{young}) {
		t.Errorf("again: %d refs went, %v; asked for %v", n, err, asked)
	}
	if tree, err := s.m.TreeOf(s.ctx, youngRev.Commit); err != nil || tree != youngTree {
		t.Errorf("the other's revision: %s %v", tree, err)
	}
	// The agent's branch can be made again, so it is not there any more.
	if _, err := s.m.Record(s.ctx, patch.RecordSpec{Key: old + "-new", Base: s.base.Commit, Tree: youngTree, Branch: oldRev.Branch, Title: "x", Delegation: old, Agent: "coder", At: at}); err != nil {
		t.Error(err)
	}
}
