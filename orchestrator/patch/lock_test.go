package patch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/patch"
)

// leave writes a lock as a git that was killed leaves it.
func leave(t *testing.T, path string, ago time.Duration) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-ago)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	return path
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

// A machine that lost its power in the middle of a fetch or a landing goes on by itself.
func TestLocksLeftBehindInAMirrorHeal(t *testing.T) {
	home := filepath.Join(t.TempDir(), "m")
	s := given(t, files{"a.txt": "1\n"})
	m := patch.NewMirrors(home, patch.Options{}).Open(patch.Repository{Name: "app", Source: s.source, Branch: "main"})
	if err := m.Fetch(s.ctx); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(home, "*", "HEAD"))
	if err != nil || len(found) != 1 {
		t.Fatalf("mirrors: %v, %v", found, err)
	}
	dir := filepath.Dir(found[0])
	locks := []string{leave(t, filepath.Join(dir, "refs/remotes/origin/main.lock"), time.Hour), leave(t, filepath.Join(dir, "packed-refs.lock"), time.Hour)}
	commit(t, s.source, files{"a.txt": "2\n"})
	git(t, s.source, "branch", "old")
	if err := m.Fetch(s.ctx); err != nil {
		t.Fatal(err)
	}
	git(t, s.source, "branch", "-D", "old")
	if err := m.Fetch(s.ctx); err != nil { // prunes, which packed-refs.lock is in the way of
		t.Fatal(err)
	}
	base, err := m.Branch(s.ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "main", base.Commit, git(t, s.source, "rev-parse", "main"))
	for _, l := range locks {
		if there(l) {
			t.Errorf("%s is still there", l)
		}
	}
}

func TestALockLeftBehindInTheFolderHeals(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	index := leave(t, filepath.Join(s.source, ".git/index.lock"), time.Hour)
	ref := leave(t, filepath.Join(s.source, ".git/refs/heads/main.lock"), time.Hour)
	s.mustLand(in)
	equal(t, "a.txt", read(t, s.source, "a.txt"), "2\n")
	if there(index) || there(ref) {
		t.Error("a lock is still there")
	}
}

// A person whose git is at work is never disturbed: a young lock stays, and so does an old
// one while a git runs in that folder.
func TestALockInUseStays(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	lock := leave(t, filepath.Join(s.source, ".git/index.lock"), time.Minute)
	refused := func(why string) {
		t.Helper()
		err := s.m.Land(s.ctx, in, nil)
		if err == nil || !strings.Contains(err.Error(), "is busy") || !there(lock) || read(t, s.source, "a.txt") != "1\n" {
			t.Errorf("%s: %v", why, err)
		}
	}
	refused("a young lock")
	leave(t, lock, time.Hour)
	at := exec.Command("git", "cat-file", "--batch")
	at.Dir = s.source
	hold, err := at.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := at.Start(); err != nil {
		t.Fatal(err)
	}
	refused("a git at work")
	if err := hold.Close(); err != nil {
		t.Fatal(err)
	}
	if err := at.Wait(); err != nil {
		t.Fatal(err)
	}
	s.mustLand(in)
	equal(t, "a.txt", read(t, s.source, "a.txt"), "2\n")
}
