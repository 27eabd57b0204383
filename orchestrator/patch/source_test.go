package patch_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/patch"
)

// at is when everything in these stories happens.
var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// files are the content of a folder by path; a name may hold anything.
type files map[string]string

// git runs the real git as a developer would.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func write(t testing.TB, dir string, fs files) {
	t.Helper()
	for name, content := range fs {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// commit writes files into a developer's folder and commits them on its branch.
func commit(t testing.TB, dir string, fs files) string {
	t.Helper()
	write(t, dir, fs)
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "change")
	return git(t, dir, "rev-parse", "HEAD")
}

// story is one repository with a mirror of it.
type story struct {
	*testing.T
	ctx     context.Context
	source  string // a developer's folder, branch main checked out
	m       *patch.Mirror
	home    *patch.Mirrors
	mirrors string // their folder
	base    patch.Base
}

// given makes a repository that holds fs, and its mirror, fetched.
func given(t *testing.T, fs files, opts ...func(*patch.Repository, *patch.Options)) *story {
	t.Helper()
	s := &story{T: t, ctx: t.Context(), source: filepath.Join(t.TempDir(), "my söurce dir")}
	git(t, "", "init", "-q", "-b", "main", s.source)
	commit(t, s.source, fs)
	repo := patch.Repository{Name: "app", Source: s.source, Branch: "main"}
	var o patch.Options
	for _, f := range opts {
		f(&repo, &o)
	}
	s.mirrors = filepath.Join(t.TempDir(), "mirrors")
	s.home = patch.NewMirrors(s.mirrors, o)
	s.m = s.home.Open(repo)
	s.fetch()
	return s
}

func (s *story) fetch() {
	s.Helper()
	if err := s.m.Fetch(s.ctx); err != nil {
		s.Fatal(err)
	}
	base, err := s.m.Branch(s.ctx, "")
	if err != nil {
		s.Fatal(err)
	}
	s.base = base
}

// checkout makes a fresh checkout of the base.
func (s *story) checkout() string {
	s.Helper()
	dir := filepath.Join(s.TempDir(), "run")
	if err := s.m.Checkout(s.ctx, s.base.Commit, "", dir); err != nil {
		s.Fatal(err)
	}
	return dir
}

func (s *story) snapshot(dir string) string {
	s.Helper()
	snap, err := s.m.Snapshot(s.ctx, dir, s.base.Tree)
	if err != nil {
		s.Fatal(err)
	}
	return snap.Tree
}

// changed is the tree after an agent wrote fs.
func (s *story) changed(fs files) string {
	s.Helper()
	dir := s.checkout()
	write(s.T, dir, fs)
	return s.snapshot(dir)
}

func (s *story) record(tree string) patch.Revision {
	s.Helper()
	rev, err := s.m.Record(s.ctx, patch.RecordSpec{Key: "dlg_1-1", Base: s.base.Commit, Tree: tree, Title: "Fix retry loop",
		Task: "tsk_1", Delegation: "dlg_1", Agent: "coder", Digest: "d1", At: at})
	if err != nil {
		s.Fatal(err)
	}
	return rev
}

// plan plans the landing of a tree that was recorded on the story's base.
func (s *story) plan(tree string) (patch.Intent, error) {
	s.Helper()
	rev := s.record(tree)
	return s.m.PlanLanding(s.ctx, patch.LandSpec{Base: s.base, Commit: rev.Commit, Branch: rev.Branch, Tree: tree, Title: "Fix retry loop",
		Task: "tsk_1", Delegation: "dlg_1", Agent: "coder", Digest: "d1", Approvers: []string{"ann", "bob"}, At: at})
}

func (s *story) mustPlan(tree string) patch.Intent {
	s.Helper()
	in, err := s.plan(tree)
	if err != nil {
		s.Fatal(err)
	}
	return in
}

func (s *story) mustLand(in patch.Intent) {
	s.Helper()
	if err := s.m.Land(s.ctx, in, nil); err != nil {
		s.Fatal(err)
	}
}

// paths lists what differs between two trees, as "M path".
func (s *story) paths(a, b string) []string {
	s.Helper()
	changes, err := s.m.Changes(s.ctx, a, b)
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, c := range changes {
		out = append(out, string(c.Status)+" "+c.Path)
	}
	return out
}

func (s *story) content(tree, path string) string {
	s.Helper()
	changes, err := s.m.Changes(s.ctx, s.emptyTree(), tree)
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range changes {
		if c.Path == path {
			b, err := s.m.Blob(s.ctx, c.NewID, 1<<20)
			if err != nil {
				s.Fatal(err)
			}
			return string(b)
		}
	}
	s.Fatalf("%q is not in the tree", path)
	return ""
}

func (s *story) emptyTree() string { return "4b825dc642cb6eb9a060e54bf8d69288fbee4904" }

// refusal returns the refusal in err, or fails.
func refusal(t *testing.T, err error, code string) *patch.Refusal {
	t.Helper()
	var r *patch.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("want a refusal with code %s, got %v", code, err)
	}
	if r.Code != code {
		t.Fatalf("want code %s, got %s: %s", code, r.Code, r.Message)
	}
	return r
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func list(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
