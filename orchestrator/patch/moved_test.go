package patch_test

import (
	"strings"
	"testing"
)

// A branch that moved is counted up to a limit, and one that was rewritten is told apart.
func TestCommitsOfABranchThatMovedAreCounted(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	from := s.base.Commit
	for _, text := range []string{"2", "3", "4"} {
		commit(t, s.source, files{"b.txt": text})
	}
	s.fetch()
	for most, want := range map[int]int{10: 3, 3: 3, 2: 2} {
		ahead, lost, err := s.m.Ahead(s.ctx, from, s.base.Commit, most)
		if err != nil || ahead != want || lost != 0 {
			t.Errorf("up to %d: %d ahead, %d lost, %v", most, ahead, lost, err)
		}
	}
	was := s.base.Commit
	git(t, s.source, "reset", "-q", "--hard", from)
	commit(t, s.source, files{"c.txt": "x"})
	s.fetch()
	if ahead, lost, err := s.m.Ahead(s.ctx, was, s.base.Commit, 10); err != nil || ahead != 1 || lost != 3 {
		t.Errorf("rewritten: %d ahead, %d lost, %v", ahead, lost, err)
	}
	for _, bad := range []string{"", "main", "--all", strings.Repeat("0", 40)} {
		if _, _, err := s.m.Ahead(s.ctx, bad, was, 10); err == nil {
			t.Errorf("%q was counted from", bad)
		}
	}
}

// Many files come with two calls of git; what is no plain file of the tree is left out.
func TestFilesOfATree(t *testing.T) {
	s := given(t, files{"a.txt": "one", "x/.editorconfig": "root = true", "x/y/b.txt": "two", ":(top)/*": "odd"})
	got, err := s.m.Files(s.ctx, s.base.Tree, []string{"a.txt", "x/.editorconfig", "x/y", "none", "x/none/deep", "*.txt", "../a.txt", "/a.txt", "", ":(top)/*"}, 3)
	if err != nil || len(got) != 3 || string(got["a.txt"]) != "one" || string(got["x/.editorconfig"]) != "roo" || string(got[":(top)/*"]) != "odd" {
		t.Errorf("%q, %v", got, err)
	}
	for _, none := range [][]string{nil, {"../x", ""}} {
		if got, err := s.m.Files(s.ctx, s.base.Tree, none, 3); err != nil || len(got) != 0 {
			t.Errorf("%q: %q, %v", none, got, err)
		}
	}
}
