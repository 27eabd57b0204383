package patch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seeds are diffs of every shape that the parser knows, good and bad.
var seeds = map[string]struct {
	diff string
	code string // "" is accepted by parser and repository
}{
	"modify":           {"diff --git a/a.txt b/a.txt\nindex 0000..1111 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n", ""},
	"plain":            {"--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-2\n+two\n", ""},
	"with times":       {"--- a/a.txt\t2026-01-01 00:00:00\n+++ b/a.txt\t2026-01-01 00:00:01\n@@ -2 +2 @@\n-2\n+two\n", ""},
	"add":              {"diff --git a/n b/n\nnew file mode 100755\nindex 0000..1111\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n", ""},
	"add plain":        {"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", ""},
	"add without mode": {"diff --git a/n b/n\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", ""},
	"add empty":        {"diff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\n", ""},
	"delete":           {"diff --git a/b.txt b/b.txt\ndeleted file mode 100644\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", ""},
	"rename":           {"diff --git a/b.txt b/c.txt\nsimilarity index 100%\nrename from b.txt\nrename to c.txt\n", ""},
	"rename, change":   {"diff --git a/a.txt b/c.txt\nrename from a.txt\nrename to c.txt\n--- a/a.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-1\n+one\n", ""},
	"copy":             {"diff --git a/b.txt b/c.txt\ncopy from b.txt\ncopy to c.txt\n", ""},
	"mode":             {"diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n", ""},
	"link":             {"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.txt\n\\ No newline at end of file\n", ""},
	"quoted":           {"diff --git \"a/t\\tq\\\"\\303\\274\" \"b/t\\tq\\\"\\303\\274\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/t\\tq\\\"\\303\\274\"\n@@ -0,0 +1 @@\n+x\n", ""},
	"spaces":           {"diff --git a/x b/y b/x b/y\nnew file mode 100644\n--- /dev/null\n+++ b/x b/y\t\n@@ -0,0 +1 @@\n+x\n", ""},
	"two hunks":        {"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n 1\n+1a\n@@ -4,2 +5,1 @@\n-4\n 5\n", ""},
	"no context":       {"--- a/a.txt\n+++ b/a.txt\n@@ -2,0 +3 @@\n+2a\n", ""},
	"blank context":    {"--- a/blank.txt\n+++ b/blank.txt\n@@ -1,3 +1,3 @@\n-x\n+z\n\n y\n", ""},
	"looks like +++":   {"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n 1\n+++ b/other\n 2\n", ""},
	"crlf lines":       {"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\r\n", ""},

	"short ids":          {"diff --git a/a.txt b/a.txt\nindex 1..2\n--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-2\n+two\n", ""},
	"line 0 of a file":   {"--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n", CodeContextMismatch},
	"line 0 of a rename": {"diff --git a/b.txt b/c.txt\nrename from b.txt\nrename to c.txt\n--- a/b.txt\n+++ b/c.txt\n@@ -0,0 +1 @@\n+x\n", CodeContextMismatch},
	"offset":             {"--- a/a.txt\n+++ b/a.txt\n@@ -3 +3 @@\n-2\n+two\n", CodeContextMismatch},
	"fuzz":               {"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-2\n+two\n 3\n", CodeContextMismatch},
	"beyond the end":     {"--- a/a.txt\n+++ b/a.txt\n@@ -99 +99 @@\n-2\n+two\n", CodeContextMismatch},
	"not there":          {"--- a/no\n+++ b/no\n@@ -1 +1 @@\n-2\n+two\n", CodeContextMismatch},
	"there already":      {"--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n", CodeContextMismatch},
	"partial delete":     {"--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n", CodeContextMismatch},
	"no newline":         {"--- a/a.txt\n+++ b/a.txt\n@@ -5 +5 @@\n-5\n\\ No newline at end of file\n+five\n", CodeContextMismatch},
	"wrong old mode":     {"diff --git a/a.txt b/a.txt\nold mode 100755\nnew mode 100644\n", CodeContextMismatch},
	"prose before":       {"Here is the patch:\n--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-2\n+two\n", CodeMalformed},
	"prose after":        {"--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-2\n+two\nThat is all.\n", CodeMalformed},
	"fence":              {"```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-2\n+two\n```\n", CodeMalformed},
	"cut short":          {"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n", CodeMalformed},
	"too many":           {"--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-1\n+one\n+more\n", CodeMalformed},
	"wrong new start":    {"--- a/a.txt\n+++ b/a.txt\n@@ -2 +7 @@\n-2\n+two\n", CodeMalformed},
	"overlap":            {"--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-2\n+two\n@@ -1 +1 @@\n-1\n+one\n", CodeMalformed},
	"changes nothing":    {"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n 1\n", CodeMalformed},
	"two names":          {"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/b.txt\n@@ -2 +2 @@\n-2\n+two\n", CodeMalformed},
	"no prefix":          {"--- a.txt\n+++ a.txt\n@@ -2 +2 @@\n-2\n+two\n", CodeMalformed},
	"binary":             {"diff --git a/a.txt b/a.txt\nindex 0000..1111\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n", CodeMalformed},
	"huge number":        {"--- a/a.txt\n+++ b/a.txt\n@@ -99999999999999999999 +1 @@\n-2\n+two\n", CodeMalformed},
	"empty name":         {"diff --git a/ b/\nold mode 100644\nnew mode 100755\n", CodeMalformed},
	"combined":           {"diff --cc a.txt\n@@@ -1 -1 +1 @@@\n", CodeMalformed},
	"up and out":         {"--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n", CodePathOutside},
	"absolute":           {"--- /dev/null\n+++ b//etc/passwd\n@@ -0,0 +1 @@\n+x\n", CodePathOutside},
	"rename out":         {"diff --git a/b.txt b/../c\nrename from b.txt\nrename to ../c\n", CodePathOutside},
	"into .git":          {"--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n", CodeGitInternal},
	"into .GIT quoted":   {"--- /dev/null\n+++ \"b/d/.G\\111T/x\"\n@@ -0,0 +1 @@\n+x\n", CodeGitInternal},
	"submodule":          {"diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+Subproject commit 7bd300f86ee10e33a989e537d6aee6960cb1f9d1\n", CodeGitlink},
	"set-uid":            {"diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 104755\n", CodeBadMode},
	"twice":              {"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+one\n--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-2\n+two\n", CodeDuplicateFile},
	"rename and change":  {"diff --git a/b.txt b/c.txt\nrename from b.txt\nrename to c.txt\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", CodeMalformed},
	"renamed twice":      {"diff --git a/b.txt b/c.txt\nrename from b.txt\nrename to c.txt\ndiff --git a/b.txt b/d.txt\nrename from b.txt\nrename to d.txt\n", CodeDuplicateFile},
	"below a file":       {"--- /dev/null\n+++ b/a.txt/x\n@@ -0,0 +1 @@\n+x\n", "any"},
	"below a new link":   {"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+d\n\\ No newline at end of file\n--- /dev/null\n+++ b/l/x\n@@ -0,0 +1 @@\n+x\n", "any"},
	"feed in the middle": {"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+one\n\\ No newline at end of file\n", CodeContextMismatch},
}

// ground is a repository that the seeds fit, and its mirror.
func ground(t testing.TB) (*Mirror, Base) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "src")
	run := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run("init", "-q", "-b", "main")
	for name, content := range map[string]string{"a.txt": "1\n2\n3\n4\n5\n", "b.txt": "b\n", "blank.txt": "x\n\ny\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("add", "-A")
	run("commit", "-qm", "first")
	m := NewMirrors(filepath.Join(t.TempDir(), "m"), Options{}).Open(Repository{Name: "app", Source: dir, Branch: "main"})
	if err := m.Fetch(context.Background()); err != nil {
		t.Fatal(err)
	}
	base, err := m.Branch(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	return m, base
}

func TestAPatchAsTextAppliesExactlyOrNotAtAll(t *testing.T) {
	m, base := ground(t)
	for name, c := range seeds {
		t.Run(name, func(t *testing.T) {
			tree, err := m.ApplyText(t.Context(), base.Tree, []byte(c.diff))
			r := RefusalOf(err)
			switch {
			case c.code == "" && err != nil:
				t.Fatal(err)
			case c.code == "" && tree == base.Tree:
				t.Fatal("nothing changed")
			case c.code == "":
			case r == nil:
				t.Fatalf("taken, or failed otherwise: %v", err)
			case c.code != "any" && r.Code != c.code:
				t.Fatalf("got %s, want %s: %s", r.Code, c.code, r.Message)
			}
		})
	}
	for _, blank := range []string{"", "\n", " \n\t\n"} {
		if tree, err := m.ApplyText(t.Context(), base.Tree, []byte(blank)); err != nil || tree != base.Tree {
			t.Errorf("blank %q: %s, %v", blank, tree, err)
		}
	}
}

// What git writes about any change without binaries, the parser reads back to
// the same tree.
func TestTheParserReadsWhatGitWrites(t *testing.T) {
	m, base := ground(t)
	for name, c := range seeds {
		if c.code != "" {
			continue
		}
		tree, err := m.ApplyText(t.Context(), base.Tree, []byte(c.diff))
		if err != nil {
			t.Fatal(name, err)
		}
		diff, err := m.Diff(t.Context(), base.Tree, tree)
		if err != nil {
			t.Fatal(name, err)
		}
		again, err := m.ApplyText(t.Context(), base.Tree, diff)
		if err != nil || again != tree {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// FuzzParsePatch: the parser never panics, and what it accepts either changes
// exactly the paths that it reported, or is refused.
func FuzzParsePatch(f *testing.F) {
	for _, c := range seeds {
		f.Add([]byte(c.diff))
	}
	m, base := ground(f)
	limits := Limits{}.filled()
	f.Fuzz(func(t *testing.T, diff []byte) {
		parsed, err := parsePatch(diff, limits)
		if err != nil {
			if RefusalOf(err) == nil {
				t.Fatalf("no refusal: %v", err)
			}
			return
		}
		again, err := parsePatch(render(withModes(parsed)), limits)
		if err != nil || len(again) != len(parsed) {
			t.Fatalf("the canonical form is not read back: %v\n%s", err, render(withModes(parsed)))
		}
		tree, err := m.ApplyText(t.Context(), base.Tree, diff)
		if err != nil {
			if RefusalOf(err) == nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("no refusal: %v", err)
			}
			return
		}
		changes, err := m.Changes(t.Context(), base.Tree, tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if !slices.ContainsFunc(parsed, func(p filePatch) bool { return p.old == c.Path || p.new == c.Path }) {
				t.Fatalf("%q changed, but the parser did not report it", c.Path)
			}
		}
	})
}

// withModes fills in what only the repository knows.
func withModes(parsed []filePatch) []filePatch {
	out := slices.Clone(parsed)
	for i := range out {
		if out[i].oldMode == "" && out[i].status == Deleted {
			out[i].oldMode = modeFile
		}
	}
	return out
}

func TestALongPatchIsRefusedBeforeItIsRead(t *testing.T) {
	_, err := parsePatch(bytes.Repeat([]byte("x"), 101), Limits{TextBytes: 100, Files: 1})
	if r := RefusalOf(err); r == nil || r.Code != CodeTooLarge {
		t.Error(err)
	}
	two := "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+x\n"
	if _, err := parsePatch([]byte(two), Limits{TextBytes: 1000, Files: 1}); RefusalOf(err) == nil || !strings.Contains(err.Error(), "more than 1 file") {
		t.Error(err)
	}
}
