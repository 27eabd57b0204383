package patch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/orchestrator/patch"
)

// A wrong source says what is wrong, in a type that callers can tell apart.
func TestFetchSaysWhatIsWrongWithTheSource(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	git(t, "", "init", "-q", empty)
	plain := t.TempDir()
	file := filepath.Join(plain, "file")
	write(t, plain, files{"file": "x"})
	good := filepath.Join(t.TempDir(), "good")
	git(t, "", "init", "-q", "-b", "main", good)
	commit(t, good, files{"a": "1"})
	cases := []struct {
		name, source, branch, code string
	}{
		{"missing folder", filepath.Join(plain, "none"), "main", patch.SourceMissing},
		{"a file", file, "main", patch.SourceNotRepository},
		{"a plain folder", plain, "main", patch.SourceNotRepository},
		{"no commit yet", empty, "main", patch.SourceEmpty},
		{"no such branch", good, "trunk", patch.SourceNoBranch},
		{"an option in place of a source", "--upload-pack=touch /tmp/x", "main", patch.SourceMissing},
		{"a transport that runs programs", "ext::sh -c true", "main", patch.SourceUnreachable},
		{"nobody listens", "http://127.0.0.1:1/x.git", "main", patch.SourceUnreachable},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := patch.NewMirrors(t.TempDir(), patch.Options{}).Open(patch.Repository{Name: "app", Source: c.source, Branch: c.branch})
			err := m.Fetch(t.Context())
			var e *patch.SourceError
			if !errors.As(err, &e) || e.Code != c.code {
				t.Fatalf("got %v, want code %s", err, c.code)
			}
			if !strings.Contains(e.Message, "app") {
				t.Errorf("the sentence does not name the repository: %s", e.Message)
			}
		})
	}
}

func TestFetchTakesBareAndDirtySourcesAndLeavesThemAsTheyAre(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	bare := filepath.Join(t.TempDir(), "bare repo.git")
	git(t, "", "clone", "-q", "--bare", s.source, bare)
	m := s.home.Open(patch.Repository{Name: "bare", Source: bare})
	if err := m.Fetch(s.ctx); err != nil {
		t.Fatal(err)
	}
	head, err := m.Branch(s.ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "head of the bare source, branch taken from its HEAD", head.Commit, s.base.Commit)
	equal(t, "branch", head.Branch, "main")

	write(t, s.source, files{"a.txt": "dirty\n", "new.txt": "untracked"})
	before := git(t, s.source, "status", "--porcelain")
	next := git(t, s.source, "commit-tree", s.base.Tree, "-p", s.base.Commit, "-m", "x")
	git(t, s.source, "update-ref", "refs/heads/side", next)
	s.fetch()
	if _, err := s.m.Branch(s.ctx, "side"); err != nil {
		t.Error("the new branch was not fetched:", err)
	}
	equal(t, "status of the source", git(t, s.source, "status", "--porcelain"), before)
}

func TestFetchPrunesButKeepsTheServersOwnRefs(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	git(t, s.source, "branch", "gone")
	s.fetch()
	rev := s.record(s.changed(files{"a.txt": "2\n"}))
	git(t, s.source, "branch", "-D", "gone")
	s.fetch()
	var none *patch.SourceError
	if _, err := s.m.Branch(s.ctx, "gone"); !errors.As(err, &none) || none.Code != patch.SourceNoBranch {
		t.Errorf("a deleted branch is still there: %v", err)
	}
	if !s.m.Has(s.ctx, rev.Commit) {
		t.Error("the revision is gone")
	}
}

func TestHeadTakesNoRevisionSyntax(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	for _, ref := range []string{"main^", "main~0", "main@{0}", ":/change", "-h", "../heads/main", "main:a.txt", "ma*", "nope", s.base.Commit, "HEAD", "refs/heads/main"} {
		if got, err := s.m.Branch(s.ctx, ref); err == nil {
			t.Errorf("%q resolved to %v", ref, got)
		}
	}
}

func TestManyUseOneMirrorAtOnce(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	home := patch.NewMirrors(filepath.Join(t.TempDir(), "fresh"), patch.Options{})
	repo := patch.Repository{Name: "app", Source: s.source, Branch: "main"}
	tmp := t.TempDir()
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 8 {
		wg.Go(func() {
			m := home.Open(repo)
			ctx := context.Background()
			if err := m.Fetch(ctx); err != nil {
				errs <- err
				return
			}
			dir := filepath.Join(tmp, string(rune('a'+i)))
			if err := m.Checkout(ctx, s.base.Commit, "", dir); err != nil {
				errs <- err
				return
			}
			_ = os.WriteFile(filepath.Join(dir, "b.txt"), []byte{byte('0' + i), '\n'}, 0o644)
			snap, err := m.Snapshot(ctx, dir, s.base.Tree)
			if err != nil {
				errs <- err
				return
			}
			_, err = m.Record(ctx, patch.RecordSpec{Key: "k" + string(rune('a'+i)), Base: s.base.Commit, Tree: snap.Tree,
				Title: "x", Delegation: "d" + string(rune('a'+i)), Agent: "coder", At: at})
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// The credential reaches git through askpass alone, and no error shows it.
func TestCredentialStaysOutOfErrors(t *testing.T) {
	m := patch.NewMirrors(t.TempDir(), patch.Options{}).Open(patch.Repository{Name: "app",
		Source: "http://user:hunter2pass@127.0.0.1:1/x.git", Branch: "main", Credential: "bot:s3cr3t-t0ken"})
	err := m.Fetch(t.Context())
	if err == nil {
		t.Fatal("nobody listens there")
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), "hunter2pass") || strings.Contains(e.Error(), "s3cr3t") {
			t.Errorf("the error shows the credential: %v", e)
		}
	}
}

func TestCancelStopsGit(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if err := s.m.Fetch(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
