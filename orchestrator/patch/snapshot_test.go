package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/orchestrator/patch"
)

func TestCheckoutIsARepositoryOfItsOwn(t *testing.T) {
	s := given(t, files{"a.txt": "1\r\n", ".gitattributes": "* text=auto eol=crlf\n*.txt ident\n", "id.txt": "$Id$\n"})
	s.record(s.changed(files{"a.txt": "other agent\n"}))
	dir := s.checkout()
	equal(t, "eol=crlf converts nothing", read(t, dir, "a.txt"), "1\n")
	equal(t, "ident is not expanded", read(t, dir, "id.txt"), "$Id$\n")
	equal(t, "status", git(t, dir, "status", "--porcelain"), "")
	equal(t, "head", git(t, dir, "rev-parse", "HEAD"), s.base.Commit)
	equal(t, "branch", git(t, dir, "symbolic-ref", "--short", "HEAD"), "main")
	equal(t, "remotes", git(t, dir, "remote"), "")
	equal(t, "refs: none of other agents", git(t, dir, "for-each-ref", "--format=%(refname)"), "refs/heads/main")
	if _, err := os.Stat(filepath.Join(dir, ".git/objects/info/alternates")); err == nil {
		t.Error("the checkout borrows objects of the mirror")
	}
	if err := s.m.Checkout(s.ctx, s.base.Commit, "", dir); err == nil {
		t.Error("a folder that is not empty was taken")
	}
}

// A child starts from what its caller has not committed.
func TestCheckoutOfASnapshotShowsItAsUncommittedWork(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n"})
	caller := s.checkout()
	write(t, caller, files{"a.txt": "2\n", "new.txt": "n\n"})
	_ = os.Remove(filepath.Join(caller, "b.txt"))
	tree := s.snapshot(caller)
	child := filepath.Join(t.TempDir(), "child")
	if err := s.m.Checkout(s.ctx, s.base.Commit, tree, child); err != nil {
		t.Fatal(err)
	}
	list(t, "status", strings.Split(git(t, child, "status", "--porcelain"), "\n"), " M a.txt", " D b.txt", "?? new.txt")
	equal(t, "snapshot of the child", s.snapshot(child), tree)
}

func TestSnapshotTakesFilesAndListsWhatIsIgnored(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", ".gitignore": "out/\n*.log\n", "kept.log": "x"})
	dir := s.checkout()
	equal(t, "nothing changed", s.snapshot(dir), s.base.Tree)
	write(t, dir, files{"a.txt": "1\n\x00binary", "out/big": "x", "b.log": "x", "sub/c.log": "x", "d/e.txt": "e"})
	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "a.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	snap, err := s.m.Snapshot(s.ctx, dir, s.base.Tree)
	if err != nil {
		t.Fatal(err)
	}
	list(t, "changes", s.paths(s.base.Tree, snap.Tree), "M a.txt", "A d/e.txt", "A link")
	list(t, "ignored", snap.Ignored, "b.log", "out/", "sub/")
}

// Whatever an agent does to its own .git, the server does not look.
func TestTheAgentsOwnGitPlaysNoPart(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	evil := "!touch " + marker
	cases := map[string]func(t *testing.T, dir string){
		"deleted": func(t *testing.T, dir string) { _ = os.RemoveAll(filepath.Join(dir, ".git")) },
		"a file": func(t *testing.T, dir string) {
			_ = os.RemoveAll(filepath.Join(dir, ".git"))
			write(t, dir, files{".git": "gitdir: /etc"})
		},
		"a broken HEAD":    func(t *testing.T, dir string) { write(t, dir, files{".git/HEAD": "\x00\xff"}) },
		"committed itself": func(t *testing.T, dir string) { git(t, dir, "commit", "-qam", "mine") },
		"filters, hooks and fsmonitor": func(t *testing.T, dir string) {
			write(t, dir, files{
				".git/config":          "[core]\n\tfsmonitor = " + marker + ".sh\n[filter \"x\"]\n\tclean = \"touch " + marker + "; cat\"\n\tsmudge = cat\n[alias]\n\tadd = " + evil + "\n",
				".git/info/attributes": "* filter=x\n", ".gitattributes": "* filter=x text eol=crlf working-tree-encoding=UTF-16\n",
				".git/hooks/post-index-change": "#!/bin/sh\ntouch " + marker + "\n"})
			_ = os.Chmod(filepath.Join(dir, ".git/hooks/post-index-change"), 0o755)
		},
		"a lock left behind": func(t *testing.T, dir string) { write(t, dir, files{".git/index.lock": ""}) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			s := given(t, files{"a.txt": "1\r\n"})
			dir := s.checkout()
			write(t, dir, files{"a.txt": "2\r\n"})
			spoil(t, dir)
			tree := s.snapshot(dir)
			equal(t, "content", s.content(tree, "a.txt"), "2\r\n")
			if _, err := os.Stat(marker); err == nil {
				t.Error("something of the agent's ran")
			}
		})
	}
}

func TestSnapshotRefusesWhatATreeCannotHold(t *testing.T) {
	mkfifo := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			_ = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
			_ = os.Remove(filepath.Join(dir, name))
			if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	put := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { write(t, dir, files{name: "x"}) }
	}
	cases := []struct {
		name  string
		spoil func(*testing.T, string)
		code  string
		path  string
	}{
		{"a named pipe", mkfifo("sub/pipe"), patch.CodeBadMode, "sub/pipe"},
		{"a named pipe in place of a file", mkfifo("a.txt"), patch.CodeBadMode, "a.txt"},
		{"a named pipe that git would open", mkfifo(".gitignore"), patch.CodeBadMode, ".gitignore"},
		{"another, in a folder", mkfifo("d/.gitattributes"), patch.CodeBadMode, "d/.gitattributes"},
		{"a link that git would read", func(t *testing.T, dir string) { _ = os.Symlink("/etc/passwd", filepath.Join(dir, ".gitignore")) }, patch.CodeBadMode, ".gitignore"},
		{"a nested repository", func(t *testing.T, dir string) { git(t, dir, "init", "-q", "nested") }, patch.CodeGitlink, "nested/.git"},
		{"a nested gitfile", put("nested/.git"), patch.CodeGitlink, "nested/.git"},
		{"upper case", put(".GIT/config"), patch.CodeGitInternal, ".GIT"},
		{"NTFS short name", put("x/git~1"), patch.CodeGitInternal, "x/git~1"},
		{"a short name with its dot", put(".git~1"), patch.CodeGitInternal, ".git~1"},
		{"trailing dot", put(".git./config"), patch.CodeGitInternal, ".git."},
		{"ignored by HFS+", put(".g\u200cit/config"), patch.CodeGitInternal, ".g\u200cit"},
		{"the folder is gone", func(t *testing.T, dir string) { _ = os.RemoveAll(dir) }, patch.CodePathOutside, ""},
		{"the folder is a link", func(t *testing.T, dir string) { _ = os.RemoveAll(dir); _ = os.Symlink("/etc", dir) }, patch.CodePathOutside, ""},
		{"a large file", func(t *testing.T, dir string) {
			write(t, dir, files{"big": ""})
			_ = os.Truncate(filepath.Join(dir, "big"), 1<<30)
		}, patch.CodeTooLarge, "big"},
	}
	s := given(t, files{"a.txt": "1\n"})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			if err := s.m.Checkout(s.ctx, s.base.Commit, "", dir); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, dir)
			_, err := s.m.Snapshot(s.ctx, dir, s.base.Tree)
			equal(t, "path", refusal(t, err, c.code).Path, c.path)
		})
	}
}

// What is ignored may hold anything: caches are full of repositories and pipes.
func TestSnapshotDoesNotJudgeWhatIsIgnored(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", ".gitignore": "cache/\n"})
	dir := s.checkout()
	write(t, dir, files{"cache/x/.git/HEAD": "ref", "cache/.GIT/y": "x", "a.txt": "2\n"})
	if err := syscall.Mkfifo(filepath.Join(dir, "cache/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	list(t, "changes", s.paths(s.base.Tree, s.snapshot(dir)), "M a.txt")
}

func TestSnapshotOfALinkOutIsRefusedByValidation(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	dir := s.checkout()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	tree := s.snapshot(dir)
	equal(t, "path", refusal(t, s.m.Validate(s.ctx, s.base.Tree, tree, patch.Rules{}), patch.CodeSymlink).Path, "out")
}

func TestTenThousandFilesWithOddNames(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	dir := s.checkout()
	odd := []string{"with space", "tab\there", "line\nfeed", `quo"te`, `back\slash`, "bad\xff\xfeutf8", "-dash", ":colon", "*star", "ünï"}
	fs := files{}
	for i := range 10_000 {
		fs[fmt.Sprintf("many/%02d/%d %s", i%50, i, odd[i%len(odd)])] = fmt.Sprintf("%d\n", i)
	}
	write(t, dir, fs)
	tree := s.snapshot(dir)
	changes, err := s.m.Changes(s.ctx, s.base.Tree, tree)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "changed paths", len(changes), 10_000)
	for _, c := range changes {
		if _, ok := fs[c.Path]; !ok {
			t.Fatalf("%q was never written", c.Path)
		}
	}
	r := refusal(t, s.m.Validate(s.ctx, s.base.Tree, tree, patch.Rules{}), patch.CodeTooLarge)
	if !strings.Contains(r.Message, "10000 files") {
		t.Error(r.Message)
	}
	wide := patch.Rules{Limits: patch.Limits{Files: 20_000}}
	odds := refusal(t, s.m.Validate(s.ctx, s.base.Tree, tree, wide), patch.CodePathAlias)
	equal(t, "paths with a backslash or a colon", len(odds.Files), 1000) // of 2,000, as many as are listed
	if err := s.m.Validate(s.ctx, tree, s.base.Tree, wide); err != nil {
		t.Error("odd names cannot be deleted:", err)
	}
	review, err := s.m.Review(s.ctx, s.base.Tree, tree)
	if err != nil || len(review.Files) != 10_000 || review.Added != 10_000 {
		t.Errorf("review: %v", err)
	}
}

func TestMergeBackTakesExactlyTheChangedPaths(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n", "d/gone.txt": "x\n", "file": "was a file\n"})
	caller := s.checkout()
	write(t, caller, files{"b.txt": "caller's\n"})
	from := s.snapshot(caller)
	child := filepath.Join(t.TempDir(), "child")
	if err := s.m.Checkout(s.ctx, s.base.Commit, from, child); err != nil {
		t.Fatal(err)
	}
	_ = os.RemoveAll(filepath.Join(child, "d"))
	_ = os.Remove(filepath.Join(child, "file"))
	write(t, child, files{"a.txt": "child's\n", "new/run.sh": "#!/bin/sh\n", "file/inside": "now a folder\n"})
	_ = os.Chmod(filepath.Join(child, "new/run.sh"), 0o755)
	_ = os.Symlink("run.sh", filepath.Join(child, "new/link"))
	to := s.snapshot(child)

	write(t, caller, files{"own.txt": "made while waiting\n"})
	for range 2 { // a worker that repeats the step after a crash
		if err := s.m.MergeBack(s.ctx, caller, from, to); err != nil {
			t.Fatal(err)
		}
	}
	list(t, "what differs from the child's tree", s.paths(to, s.snapshot(caller)), "A own.txt")
	if _, err := os.Stat(filepath.Join(caller, "d")); err == nil {
		t.Error("the empty folder is still there")
	}
}

func TestMergeBackRefusesWhatTheCallerChangedToo(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n", "d/x.txt": "x\n"})
	to := s.changed(files{"a.txt": "child's\n", "b.txt": "child's\n", "d/y.txt": "y\n", "n.txt": "n\n"})
	cases := map[string]struct {
		spoil func(t *testing.T, dir string)
		named string
	}{
		"changed":           {func(t *testing.T, dir string) { write(t, dir, files{"b.txt": "caller's\n"}) }, "b.txt"},
		"deleted":           {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "b.txt")) }, "b.txt"},
		"made a program":    {func(t *testing.T, dir string) { _ = os.Chmod(filepath.Join(dir, "b.txt"), 0o755) }, "b.txt"},
		"added":             {func(t *testing.T, dir string) { write(t, dir, files{"n.txt": "mine\n"}) }, "n.txt"},
		"a folder in place": {func(t *testing.T, dir string) { write(t, dir, files{"n.txt/x": "mine\n"}) }, "n.txt"},
		"a pipe in place": {func(t *testing.T, dir string) {
			_ = os.Remove(filepath.Join(dir, "b.txt"))
			_ = syscall.Mkfifo(filepath.Join(dir, "b.txt"), 0o644)
		}, "b.txt"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "caller")
			if err := s.m.Checkout(s.ctx, s.base.Commit, "", dir); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, dir)
			r := refusal(t, s.m.MergeBack(s.ctx, dir, s.base.Tree, to), patch.CodeContextMismatch)
			list(t, "files", r.Files, c.named)
			equal(t, "nothing was written", read(t, dir, "a.txt"), "1\n")
		})
	}
}

// A hostile caller puts links where folders were, to be written through.
func TestMergeBackWritesThroughNoLink(t *testing.T) {
	s := given(t, files{"d/x.txt": "x\n", "e/x.txt": "x\n"})
	to := s.changed(files{"d/x.txt": "child's\n", "d/new.txt": "n\n"})
	outside := t.TempDir()
	write(t, outside, files{"x.txt": "x\n"})
	for _, target := range []string{outside, "e"} {
		dir := filepath.Join(t.TempDir(), "caller")
		if err := s.m.Checkout(s.ctx, s.base.Commit, "", dir); err != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(filepath.Join(dir, "d"))
		if err := os.Symlink(target, filepath.Join(dir, "d")); err != nil {
			t.Fatal(err)
		}
		refusal(t, s.m.MergeBack(s.ctx, dir, s.base.Tree, to), patch.CodeContextMismatch)
		equal(t, "inside", read(t, dir, "e/x.txt"), "x\n")
		equal(t, "outside", read(t, outside, "x.txt"), "x\n")
		if _, err := os.Stat(filepath.Join(outside, "new.txt")); err == nil {
			t.Error("written outside")
		}
	}
}
