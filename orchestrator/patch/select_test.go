package patch_test

import (
	"os"
	"path/filepath"
	"testing"

	"gatehouse/orchestrator/patch"
)

func TestSelectTakesExactlyTheChosenEntries(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n", "run.sh": "x\n", "d/x": "1\n", "gone.txt": "1\n"})
	dir := s.checkout()
	write(t, dir, files{"a.txt": "2\n", "b.txt": "2\n", "new/ü .txt": "1\n"})
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	must(t, os.Remove(filepath.Join(dir, "gone.txt")))
	must(t, os.RemoveAll(filepath.Join(dir, "d")))
	must(t, os.Symlink("a.txt", filepath.Join(dir, "d")))
	tree := s.snapshot(dir)
	for name, c := range map[string]struct{ choose, want []string }{
		"one file":          {[]string{"a.txt"}, []string{"a.txt"}},
		"a mode":            {[]string{"run.sh"}, []string{"run.sh"}},
		"a deletion":        {[]string{"gone.txt"}, []string{"gone.txt"}},
		"a new one, twice":  {[]string{"new/ü .txt", "new/ü .txt"}, []string{"new/ü .txt"}},
		"a folder's end":    {[]string{"d/x"}, []string{"d/x"}},
		"a link for a file": {[]string{"d", "d/x"}, []string{"d", "d/x"}},
		"nothing":           {nil, nil},
	} {
		got, err := s.m.Select(s.ctx, s.base.Tree, tree, c.choose)
		must(t, err)
		list(t, name, named(s, s.base.Tree, got), c.want...)
	}
	all, err := s.m.Select(s.ctx, s.base.Tree, tree, named(s, s.base.Tree, tree))
	must(t, err)
	equal(t, "all of them", all, tree)
	for path, choice := range map[string][]string{"d": {"d", "a.txt"}, "none": {"a.txt", "none"}, "d/": {"d/"}, "": {""}, "*": {"*"}} {
		_, err := s.m.Select(s.ctx, s.base.Tree, tree, choice)
		equal(t, "path named", refusal(t, err, patch.CodeContextMismatch).Path, path)
	}
}

func TestAnEditKeepsModesAndEveryByteOfIt(t *testing.T) {
	s := given(t, files{"run.sh": "#!/bin/sh\n", "a/b.txt": "1\n", "c": "1\n"})
	dir := s.checkout()
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	base := s.snapshot(dir)
	text := "#!/bin/sh\r\necho \u00e4\r\n\tno end"
	tree, err := s.m.EditFiles(s.ctx, base, []patch.FileEdit{
		{Path: "run.sh", Text: text}, {Path: "c", Delete: true}, {Path: "c/d/e.txt", Text: ""}, {Path: "a/b.txt", Delete: true}})
	must(t, err)
	equal(t, "bytes", s.content(tree, "run.sh"), text)
	changes, err := s.m.Changes(s.ctx, base, tree)
	must(t, err)
	for _, c := range changes {
		switch c.Path {
		case "run.sh":
			equal(t, "mode", c.NewMode, "100755")
		case "c/d/e.txt":
			equal(t, "mode of a new file", c.NewMode, "100644")
		}
	}
	list(t, "changed", named(s, base, tree), "a/b.txt", "c", "c/d/e.txt", "run.sh")

	again, err := s.m.EditFiles(s.ctx, tree, []patch.FileEdit{{Path: "c/d/e.txt", Delete: true}, {Path: "c", Text: "1\n"}, {Path: "a/b.txt", Text: "1\n"}, {Path: "run.sh", Text: "#!/bin/sh\n"}})
	if err == nil {
		t.Errorf("a file stands where a folder was that it names: %s", again)
	}
	refusal(t, err, patch.CodeContextMismatch)
	for _, e := range [][]patch.FileEdit{
		{{Path: "x", Text: "1"}, {Path: "x/y", Text: "1"}}, {{Path: "x/y", Text: "1"}, {Path: "x", Text: "1"}}, {{Path: "run.sh/x", Text: "1"}}, {{Path: "run.sh/x/y", Text: "1"}},
	} {
		_, err := s.m.EditFiles(s.ctx, tree, e)
		refusal(t, err, patch.CodeContextMismatch)
	}
	_, err = s.m.EditFiles(s.ctx, tree, make([]patch.FileEdit, patch.MaxEdits+1))
	refusal(t, err, patch.CodeTooLarge)
}

func TestAFileOfATree(t *testing.T) {
	s := given(t, files{"a b.txt": "12345", "d/x": "1\n"})
	got, found, err := s.m.File(s.ctx, s.base.Tree, "a b.txt", 5)
	if string(got) != "12345" || !found || err != nil {
		t.Errorf("%q %v %v", got, found, err)
	}
	got, found, err = s.m.File(s.ctx, s.base.Tree, "a b.txt", 3)
	if string(got) != "123" || !found || err != patch.ErrCut {
		t.Errorf("%q %v %v", got, found, err)
	}
	for _, path := range []string{"d", "none", "", "/a b.txt", "../a b.txt", "*", "d/"} {
		if got, found, err := s.m.File(s.ctx, s.base.Tree, path, 5); got != nil || found || err != nil {
			t.Errorf("%q: %q %v %v", path, got, found, err)
		}
	}
}

// named lists the paths that differ between two trees.
func named(s *story, a, b string) []string {
	var paths []string
	for _, p := range s.paths(a, b) {
		paths = append(paths, p[2:])
	}
	return paths
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
