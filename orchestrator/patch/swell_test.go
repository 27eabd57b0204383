package patch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

// asked has every call of git noted, and returns the verbs since the last time.
func asked(t *testing.T) func() string {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >> %s\nexec %s \"$@\"\n", notes, real)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		b, _ := os.ReadFile(notes)
		_ = os.Remove(notes)
		return string(b)
	}
}

// A few kilobytes of text that make hundreds of megabytes of files are refused from the
// sizes alone: git is not even asked to apply them.
func TestASmallPatchThatSwellsIsRefusedBeforeGitBegins(t *testing.T) {
	fs := files{"big": strings.Repeat("0123456789abcde\n", 64<<10)} // 1 MB
	for i := range 70 {
		fs[fmt.Sprintf("many/%02d", i)] = fmt.Sprintf("%02d\n", i) + fs["big"]
	}
	s := given(t, fs)
	notes := asked(t)
	var copies, renames, modes, long strings.Builder
	for i := range 400 {
		fmt.Fprintf(&copies, "diff --git a/big b/c%d\nsimilarity index 100%%\ncopy from big\ncopy to c%d\n", i, i)
	}
	for i := range 70 {
		fmt.Fprintf(&renames, "diff --git a/many/%02d b/moved/%02d\nsimilarity index 100%%\nrename from many/%02d\nrename to moved/%02d\n", i, i, i, i)
		fmt.Fprintf(&modes, "diff --git a/many/%02d b/many/%02d\nold mode 100644\nnew mode 100755\n", i, i)
	}
	for i := range 3 {
		fmt.Fprintf(&long, "--- a/many/%02d\n+++ b/many/%02d\n@@ -1 +1,2 @@\n %02d\n+x\n", i, i, i)
	}
	for name, text := range map[string]string{"copies": copies.String(), "renames": renames.String(), "modes": modes.String()} {
		notes()
		_, err := s.m.ApplyText(s.ctx, s.base.Tree, []byte(text))
		refusal(t, err, patch.CodeTooLarge)
		if calls := notes(); strings.Contains(calls, " apply ") || !strings.Contains(calls, "read-tree") {
			t.Errorf("%s, %d bytes: git was asked\n%s", name, len(text), calls)
		}
	}
	if _, err := s.m.ApplyText(s.ctx, s.base.Tree, []byte(long.String())); err != nil {
		t.Errorf("three lines in three long files: %v", err)
	}
	if calls := notes(); !strings.Contains(calls, " apply ") {
		t.Errorf("git was not asked:\n%s", calls)
	}
	_, err := s.m.ApplyText(s.ctx, s.base.Tree, []byte("diff --git a/big b/big\nindex 12..34\nGIT binary patch\ndelta 1\nIcmZPo000310RR91\n"))
	refusal(t, err, patch.CodeMalformed) // a binary delta has no place in a text at all
}

// Files that stay as they are do not have to be read.
func TestAPureRenameAndAModeKeepTheirContent(t *testing.T) {
	s := given(t, files{"a": "1\n", "b": "2\n", "c": "3\n"})
	tree, err := s.m.ApplyText(s.ctx, s.base.Tree, []byte("diff --git a/a b/d\nrename from a\nrename to d\ndiff --git a/b b/e\nold mode 100644\nnew mode 100755\ncopy from b\ncopy to e\n"+
		"diff --git a/c b/c\nold mode 100644\nnew mode 100755\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"d": "1\n", "e": "2\n", "b": "2\n", "c": "3\n"} {
		equal(t, path, s.content(tree, path), want)
	}
}
