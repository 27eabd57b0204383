package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

// manyLines is a text in which each line is another.
func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i*i)
	}
	return b.String()
}

// moves renames files in a folder: from, to, from, to.
func moves(t *testing.T, names ...string) func(dir string) {
	return func(dir string) {
		t.Helper()
		for pair := range slices.Chunk(names, 2) {
			to := filepath.Join(dir, pair[1])
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, pair[0]), to); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A review shows a move as one file, for reading. For rules it is two paths, with all
// lines of the file at both, and so is a copy all new.
func TestTouchesAreBothSidesOfAMove(t *testing.T) {
	long := manyLines(40)
	kept := strings.ReplaceAll(long, "line", "another")
	s := given(t, files{"core/auth.go": long, "core/kept.go": "x\n" + kept, "b.txt": "1\n", "gone": "1\n2\n", "type": "t\n"})
	r := review(s, files{"core/kept.go": "y\n" + kept, "copy.go": "y\n" + kept + "z\n", "b.txt": "1\n2\n", "new": "n\n"}, moves(t, "core/auth.go", "other/auth.go"), func(dir string) {
		_ = os.Remove(filepath.Join(dir, "gone"))
		_ = os.Remove(filepath.Join(dir, "type"))
		_ = os.Symlink("b.txt", filepath.Join(dir, "type"))
		f, err := os.OpenFile(filepath.Join(dir, "other/auth.go"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.WriteString("true\n")
		_ = f.Close()
	})
	var got []string
	for _, x := range patch.Touches(r.Files) {
		got = append(got, fmt.Sprintf("%s %s<%s +%d -%d %s>%s", x.Status, x.Path, x.OldPath, x.Added, x.Removed, x.OldMode, x.NewMode))
	}
	list(t, "touches", got,
		"modified b.txt< +1 -0 100644>100644",
		"copied copy.go<core/kept.go +42 -0 100644>100644",
		"removed core/auth.go< +0 -40 100644>",
		"modified core/kept.go< +1 -1 100644>100644",
		"removed gone< +0 -2 100644>",
		"added new< +1 -0 >100644",
		"renamed other/auth.go<core/auth.go +41 -0 100644>100644",
		"modified type< +1 -1 100644>120000")
	for _, f := range r.Files {
		if f.Path == "other/auth.go" && (f.Status != patch.Renamed || f.Added != 1 || f.Removed != 0 || f.Similarity < 90) {
			t.Errorf("for reading it is one file with one more line: %+v", f)
		}
	}
}

// A request of before the lines were counted whole gives what it has, at both paths.
func TestTouchesOfAnOldRequest(t *testing.T) {
	got := patch.Touches([]patch.File{{Path: "b", OldPath: "a", Status: patch.Renamed, Added: 3, Removed: 2}, {Path: "c", OldPath: "a", Status: patch.Copied, Added: 1}})
	equal(t, "touches", fmt.Sprint(got), "[{a  removed 0 2   false} {b a renamed 3 0   false} {c a copied 1 0   false}]")
}

// Files that are moved away are gone from where they were: rules that look at mass
// deletions, and the note, count them.
func TestWhatMovesAwayCountsAsDeleted(t *testing.T) {
	base, names := files{"a.txt": "1\n", "b.txt": "2\n"}, []string{}
	for i := range 40 {
		base[fmt.Sprintf("core/%d.go", i)] = fmt.Sprintf("file %d\n", i)
	}
	for i := range 21 {
		names = append(names, fmt.Sprintf("core/%d.go", i), fmt.Sprintf("docs/%d.md", i))
	}
	s := given(t, base)
	r := review(s, nil, moves(t, names...))
	list(t, "warnings", codes(r), "mass_deletion ")
	equal(t, "note", r.Notes[0].Text, "21 files are moved away.")
	r = review(s, nil, moves(t, names[:40]...))
	list(t, "warnings of 20", codes(r))
	r = review(s, nil, moves(t, names[:2]...), func(dir string) { _ = os.Remove(filepath.Join(dir, "a.txt")) })
	equal(t, "note", r.Notes[0].Text, "1 file is deleted and 1 is moved away.")
}

// A copy of a file that stays as it is shows all of its lines, and is a copy to rules and in
// a warning. Empty files are copies of nothing.
func TestACopyOfAFileThatStays(t *testing.T) {
	s := given(t, files{"core/auth.go": "package core\n", "a/__init__.py": "", "z.go": "package core\n", "link": "x"})
	r := review(s, files{"docs/auth.md": "package core\n", "b/__init__.py": ""})
	list(t, "warnings", codes(r), "copy docs/auth.md")
	f := r.Files[1]
	if f.Path != "docs/auth.md" || f.Status != patch.Added || f.CopyOf != "core/auth.go" || f.Added != 1 {
		t.Errorf("%+v", f)
	}
	equal(t, "touch", fmt.Sprint(patch.Touches(r.Files)[1]), "{docs/auth.md core/auth.go copied 1 0  100644 false}")
}

// What was there before is looked through again where it moves to, and the text of the
// patch has all of it.
func TestAMovedFileIsReadInFull(t *testing.T) {
	odd := manyLines(20) + "key = AKIA" + "IOSFODNN7EXAMPLE\nif admin \u202e// }\n"
	s := given(t, files{"docs/x.md": odd, "README.md": "x\n"})
	dir := s.checkout()
	moves(t, "docs/x.md", "src/init.go")(dir)
	tree := s.snapshot(dir)
	r, err := s.m.Review(s.ctx, s.base.Tree, tree)
	if err != nil {
		t.Fatal(err)
	}
	list(t, "warnings", codes(r), "bidi src/init.go", "secret_like src/init.go")
	diff, err := s.m.Diff(s.ctx, s.base.Tree, tree)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(odd) {
		if !strings.Contains(string(diff), "\n+"+line) || !strings.Contains(string(diff), "\n-"+line) {
			t.Errorf("the diff has not both sides of %q", line)
		}
	}
	if strings.Contains(string(diff), "rename from") {
		t.Errorf("the diff leans on a rename:\n%s", diff)
	}
}
