package patch_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/orchestrator/patch"
)

func TestTheCredentialReachesAnHTTPSource(t *testing.T) {
	asked := make(chan string, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, secret, ok := r.BasicAuth(); ok {
			asked <- user + "/" + secret
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	defer server.Close()
	for credential, want := range map[string]string{"bot:s3cret": "bot/s3cret", "t0ken": "x-access-token/t0ken"} {
		m := patch.NewMirrors(filepath.Join(t.TempDir(), "m"), patch.Options{}).
			Open(patch.Repository{Name: "app", Source: server.URL + "/x.git", Branch: "main", Credential: credential})
		err := m.Fetch(t.Context())
		var e *patch.SourceError
		if !errors.As(err, &e) || e.Code != patch.SourceAuth {
			t.Fatalf("got %v", err)
		}
		select {
		case got := <-asked:
			equal(t, "credential", got, want)
		case <-time.After(10 * time.Second):
			t.Fatal("git sent no credential")
		}
	}
}

// A server that runs as another user than the folder's owner still reads and lands.
func TestASourceOfAnotherOwner(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	if os.Geteuid() == 0 { // only root can give files away; others run the plain story
		err := filepath.WalkDir(s.source, func(p string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(p, 12345, 12345))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.m = patch.NewMirrors(filepath.Join(t.TempDir(), "m"), patch.Options{}).Open(s.m.Repository())
	s.fetch()
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	s.mustLand(in)
	equal(t, "file", read(t, s.source, "a.txt"), "2\n")
}

func TestABranchCheckedOutInALinkedFolder(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	git(t, s.source, "checkout", "-q", "-b", "elsewhere")
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, s.source, "worktree", "add", "-q", linked, "main")
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	write(t, linked, files{"a.txt": "mine\n"})
	var dirty *patch.DirtyFolder
	if err := s.m.Land(s.ctx, in, nil); !errors.As(err, &dirty) || dirty.Folder != linked {
		t.Fatalf("got %v", err)
	}
	git(t, linked, "checkout", "-q", ".")
	s.mustLand(in)
	equal(t, "file", read(t, linked, "a.txt"), "2\n")
	equal(t, "the other folder", read(t, s.source, "a.txt"), "1\n")
}

// The end of a context takes down git and whatever git started.
func TestACancelledPushLeavesNoProcess(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	bare := filepath.Join(t.TempDir(), "b.git")
	git(t, "", "clone", "-q", "--bare", s.source, bare)
	s.m = s.home.Open(patch.Repository{Name: "app", Source: bare, Branch: "main"})
	s.fetch()
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	pidFile := filepath.Join(t.TempDir(), "pid")
	hook := "#!/bin/sh\necho $$ >'" + pidFile + ".new'\nmv '" + pidFile + ".new' '" + pidFile + "'\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- s.m.Land(ctx, in, nil) }()
	until(t, "the hook runs", func() bool { _, err := os.Stat(pidFile); return err == nil })
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Dir(pidFile), "pid")))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	until(t, "the hook is gone", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
	})
	equal(t, "branch", git(t, bare, "rev-parse", "main"), s.base.Commit)
}

// What a mirror holds can be shown after a restart while the source is away.
func TestTheMirrorServesWhileTheSourceIsAway(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	tree := s.changed(files{"a.txt": "2\n"})
	dir := filepath.Join(t.TempDir(), "m")
	repo := s.m.Repository()
	if err := patch.NewMirrors(dir, patch.Options{}).Open(repo).Fetch(s.ctx); err != nil {
		t.Fatal(err)
	}
	rev := s.record(tree)
	if err := os.Rename(s.source, s.source+" moved"); err != nil {
		t.Fatal(err)
	}
	m := patch.NewMirrors(dir, patch.Options{}).Open(repo)
	if err := m.Import(s.ctx, rev.Bundle, rev.Commit); err != nil {
		t.Fatal(err)
	}
	r, err := m.Review(s.ctx, s.base.Tree, tree)
	if err != nil || len(r.Files) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	var e *patch.SourceError
	if err := m.Fetch(s.ctx); !errors.As(err, &e) || e.Code != patch.SourceMissing {
		t.Errorf("got %v", err)
	}
}

func TestASHA256Source(t *testing.T) {
	source := filepath.Join(t.TempDir(), "src")
	git(t, "", "init", "-q", "-b", "main", "--object-format=sha256", source)
	commit(t, source, files{"a.txt": "1\n"})
	s := &story{T: t, ctx: t.Context(), source: source, home: patch.NewMirrors(filepath.Join(t.TempDir(), "m"), patch.Options{})}
	s.m = s.home.Open(patch.Repository{Name: "app", Source: source, Branch: "main"})
	s.fetch()
	tree, err := s.m.ApplyText(s.ctx, s.base.Tree, []byte("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+2\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.mustLand(s.mustPlan(tree))
	equal(t, "file", read(t, source, "a.txt"), "2\n")
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain until", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
