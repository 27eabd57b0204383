package patch_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

func TestAYesLandsTheApprovedTreeAsAMergeWithTrailers(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n"})
	tree := s.changed(files{"a.txt": "2\n"})
	in := s.mustPlan(tree)
	s.mustLand(in)

	equal(t, "branch", git(t, s.source, "rev-parse", "main"), in.Merge)
	equal(t, "tree", git(t, s.source, "rev-parse", "main^{tree}"), tree)
	equal(t, "first parent", git(t, s.source, "rev-parse", "main^1"), s.base.Commit)
	equal(t, "second parent", git(t, s.source, "rev-parse", "main^2"), in.Commit)
	equal(t, "trailers", git(t, s.source, "log", "-1", "--format=%(trailers:only)", "main"),
		"Gatehouse-Task: tsk_1\nGatehouse-Delegation: dlg_1\nGatehouse-Agent: coder\nGatehouse-Digest: d1\nApproved-by: ann\nApproved-by: bob")
	equal(t, "trailers of the agent's commit", git(t, s.source, "log", "-1", "--format=%(trailers:only)", "main^2"),
		"Gatehouse-Task: tsk_1\nGatehouse-Delegation: dlg_1\nGatehouse-Agent: coder\nGatehouse-Digest: d1")
	equal(t, "file in the clean folder", read(t, s.source, "a.txt"), "2\n")
	equal(t, "status", git(t, s.source, "status", "--porcelain"), "")

	s.mustLand(in) // again: a worker that did not learn of its success
	equal(t, "branch after landing twice", git(t, s.source, "rev-parse", "main"), in.Merge)
}

func TestLandingInABareRepositoryRunsItsHooks(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	bare := filepath.Join(t.TempDir(), "b.git")
	git(t, "", "clone", "-q", "--bare", s.source, bare)
	s.m = s.home.Open(patch.Repository{Name: "app", Source: bare, Branch: "main"})
	s.fetch()
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	hook := filepath.Join(bare, "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho no pushes on fridays >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var rejected *patch.Rejected
	if err := s.m.Land(s.ctx, in, nil); !errors.As(err, &rejected) {
		t.Fatalf("got %v", err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	s.mustLand(in)
	equal(t, "branch", git(t, bare, "rev-parse", "main"), in.Merge)
}

// Hooks that a work folder takes from its own files would be the agent's.
func TestLandingRunsNoHookOfAWorkFolder(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	marker := filepath.Join(t.TempDir(), "ran")
	for _, h := range []string{"pre-receive", "update", "post-receive", "post-update", "post-index-change", "push-to-checkout", "reference-transaction"} {
		p := filepath.Join(s.source, ".git", "hooks", h)
		if err := os.WriteFile(p, []byte("#!/bin/sh\ntouch '"+marker+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.mustLand(s.mustPlan(s.changed(files{"a.txt": "2\n"})))
	if _, err := os.Stat(marker); err == nil {
		t.Error("a hook ran")
	}
}

func TestADirtyFolderIsRefusedAndNothingIsLost(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n", ".gitignore": "out/\n"})
	tree := s.changed(files{"a.txt": "2\n", "new/x.txt": "n\n"})
	in := s.mustPlan(tree)

	cases := []struct {
		name  string
		dirty files
		named string
	}{
		{"a changed file", files{"b.txt": "mine\n"}, "b.txt"},
		{"an added path that exists untracked", files{"new/x.txt": "mine\n"}, "new/x.txt"},
		{"a file where a folder goes", files{"new": "mine\n"}, "new"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			write(t, s.source, c.dirty)
			var dirty *patch.DirtyFolder
			if err := s.m.Land(s.ctx, in, nil); !errors.As(err, &dirty) {
				t.Fatalf("got %v", err)
			}
			list(t, "files", dirty.Files, c.named)
			equal(t, "branch", git(t, s.source, "rev-parse", "main"), s.base.Commit)
			for name, content := range c.dirty {
				equal(t, name, read(t, s.source, name), content)
			}
			git(t, s.source, "checkout", "-q", ".")
			git(t, s.source, "clean", "-fdq")
		})
	}
	write(t, s.source, files{"unrelated.txt": "mine\n"})
	s.mustLand(in) // the retry button, with an untracked file that is in nobody's way
	equal(t, "untracked file", read(t, s.source, "unrelated.txt"), "mine\n")
}

func TestAnIgnoredFileIsNotOverwritten(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	write(t, s.source, files{".git/info/exclude": "config.local\n", "config.local": "precious\n"})
	in := s.mustPlan(s.changed(files{"config.local": "from the agent\n"}))
	var dirty *patch.DirtyFolder
	if err := s.m.Land(s.ctx, in, nil); !errors.As(err, &dirty) || dirty.Reason != "in_the_way" {
		t.Fatalf("got %v", err)
	}
	equal(t, "the file", read(t, s.source, "config.local"), "precious\n")
}

// Killed between the files and the ref, receive-pack leaves the folder ahead.
func TestAPushCutShortAfterTheFilesIsFinished(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	tree := s.changed(files{"a.txt": "2\n", "n.txt": "n\n"})
	in := s.mustPlan(tree)
	write(t, s.source, files{"a.txt": "2\n", "n.txt": "n\n"})
	git(t, s.source, "add", "-A")
	s.mustLand(in)
	equal(t, "branch", git(t, s.source, "rev-parse", "main"), in.Merge)
	equal(t, "status", git(t, s.source, "status", "--porcelain"), "")
}

func TestALostLeaseLandsNothing(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	git(t, s.source, "checkout", "-q", "--detach")
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	other := commit(t, s.source, files{"c.txt": "theirs\n"})
	git(t, s.source, "update-ref", "refs/heads/main", other)
	var moved *patch.Moved
	if err := s.m.Land(s.ctx, in, nil); !errors.As(err, &moved) {
		t.Fatalf("got %v", err)
	}
	equal(t, "where it is now", moved.To, other)
	equal(t, "branch", git(t, s.source, "rev-parse", "main"), other)
}

func TestAMovedBase(t *testing.T) {
	t.Run("elsewhere: exactly the approved files land on it", func(t *testing.T) {
		s := given(t, files{"a.txt": "1\n", "b.txt": "1\n", "old.txt": "o\n"})
		dir := s.checkout()
		write(t, dir, files{"a.txt": "2\n", "n/n.txt": "n\n"})
		_ = os.Remove(filepath.Join(dir, "old.txt"))
		tree := s.snapshot(dir)
		theirs := commit(t, s.source, files{"b.txt": "theirs\n", "c.txt": "c\n"})
		in := s.mustPlan(tree)
		if !in.Carried || in.Tree == tree {
			t.Fatalf("not carried over: %+v", in)
		}
		s.mustLand(in)
		equal(t, "first parent", git(t, s.source, "rev-parse", "main^1"), theirs)
		list(t, "what landed", strings.Fields(git(t, s.source, "diff", "--name-only", "main^1", "main")), "a.txt", "n/n.txt", "old.txt")
		equal(t, "their file", read(t, s.source, "b.txt"), "theirs\n")
	})
	t.Run("the same file: asked again", func(t *testing.T) {
		s := given(t, files{"a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
		tree := s.changed(files{"a.txt": "one\n2\n3\n4\n5\n6\n7\n8\n9\n"})
		commit(t, s.source, files{"a.txt": "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"})
		_, err := s.plan(tree)
		var moved *patch.Moved
		if !errors.As(err, &moved) {
			t.Fatalf("got %v", err)
		}
		list(t, "files", moved.Files, "a.txt")
		equal(t, "commits", moved.Commits, 1)
	})
	t.Run("a folder where a file is added: asked again", func(t *testing.T) {
		s := given(t, files{"a.txt": "1\n"})
		tree := s.changed(files{"x": "file\n"})
		commit(t, s.source, files{"x/y": "folder\n"})
		var moved *patch.Moved
		if _, err := s.plan(tree); !errors.As(err, &moved) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("only the mode moved: asked again", func(t *testing.T) {
		s := given(t, files{"a.txt": "1\n"})
		tree := s.changed(files{"a.txt": "2\n"})
		git(t, s.source, "update-index", "--chmod=+x", "a.txt")
		git(t, s.source, "commit", "-q", "-m", "mode")
		var moved *patch.Moved
		if _, err := s.plan(tree); !errors.As(err, &moved) {
			t.Fatalf("got %v", err)
		}
	})
}

// A line that was approved under [dev] must not land under [prod], as git's
// merge would have it once somebody else inserts lines above.
func TestNothingApprovedMovesToAnotherPlace(t *testing.T) {
	section := "debug = false\nport = 80\nhost = x\nlog = no\n"
	s := given(t, files{"app.ini": "[dev]\n" + section})
	tree := s.changed(files{"app.ini": "[dev]\n" + strings.Replace(section, "false", "true", 1)})
	commit(t, s.source, files{"app.ini": "[prod]\n" + section + "[dev]\n" + section})
	base := s.base
	_, err := s.plan(tree)
	var moved *patch.Moved
	if !errors.As(err, &moved) {
		t.Fatalf("carried over: %v", err)
	}
	s.fetch()
	c, err := s.m.CarryOver(s.ctx, base.Tree, tree, s.base.Tree)
	if err != nil || c.OK || c.Tree != "" {
		t.Errorf("carry over: %+v, %v", c, err)
	}
}

func TestRecoveryFindsWhatBecameOfAnIntent(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	// The intent is stored as JSON and read back by another process.
	stored, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var again patch.Intent
	if err := json.Unmarshal(stored, &again); err != nil || again != in {
		t.Fatalf("the intent changed on its way: %+v, %v", again, err)
	}
	outcome := func() patch.Outcome {
		t.Helper()
		o, err := s.m.Landed(s.ctx, again)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	equal(t, "before the push", outcome(), patch.PushAgain)
	s.mustLand(again)
	equal(t, "after the push", outcome(), patch.Landed)
	commit(t, s.source, files{"later.txt": "x\n"})
	equal(t, "with later work on top", outcome(), patch.Landed)
	git(t, s.source, "reset", "-q", "--hard", s.base.Commit)
	equal(t, "after somebody reset the branch", outcome(), patch.PushAgain)
	commit(t, s.source, files{"else.txt": "x\n"})
	equal(t, "with other work in its place", outcome(), patch.BaseMoved)
}

// Another node has the database: the bundle and the intent, not the mirror.
func TestAnotherNodeLandsFromBundleAndIntent(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n"})
	tree := s.changed(files{"a.txt": "2\n"})
	rev := s.record(tree)
	commit(t, s.source, files{"b.txt": "theirs\n"})
	in := s.mustPlan(tree)
	if !in.Carried {
		t.Fatal("the base moved elsewhere, so the change carries over")
	}

	other := patch.NewMirrors(filepath.Join(t.TempDir(), "node2"), patch.Options{Name: "Other", Email: "other@node"}).
		Open(s.m.Repository())
	if err := other.Import(s.ctx, rev.Bundle, rev.Commit); err != nil {
		t.Fatal(err)
	}
	if err := other.Land(s.ctx, in, nil); err != nil {
		t.Fatal(err)
	}
	equal(t, "branch", git(t, s.source, "rev-parse", "main"), in.Merge)
}

func TestDeliverBranchLeavesTheTargetAlone(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"}, func(r *patch.Repository, _ *patch.Options) { r.Deliver = patch.DeliverBranch })
	in := s.mustPlan(s.changed(files{"a.txt": "2\n"}))
	s.mustLand(in)
	equal(t, "main", git(t, s.source, "rev-parse", "main"), s.base.Commit)
	equal(t, "the agent's branch", git(t, s.source, "rev-parse", in.Ref), in.Merge)
	equal(t, "its parent", git(t, s.source, "rev-parse", in.Ref+"^@"), s.base.Commit)
	equal(t, "its tree", git(t, s.source, "rev-parse", in.Ref+"^{tree}"), in.Patched)
	if said := git(t, s.source, "log", "-1", "--format=%B", in.Ref); !strings.Contains(said, "Approved-by: ") {
		t.Errorf("the pushed commit says %q", said)
	}
	o, err := s.m.Landed(s.ctx, in)
	if err != nil || o != patch.Landed {
		t.Errorf("landed: %v, %v", o, err)
	}
	if err := s.m.Land(s.ctx, in, nil); err != nil {
		t.Error("pushing the same branch again:", err)
	}
}

func TestRevertUndoesExactlyTheMerge(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n"})
	in := s.mustPlan(s.changed(files{"a.txt": "2\n", "n.txt": "n\n"}))
	s.mustLand(in)
	commit(t, s.source, files{"b.txt": "later\n"})
	s.fetch()
	tree, err := s.m.RevertTree(s.ctx, in.Merge, s.base)
	if err != nil {
		t.Fatal(err)
	}
	list(t, "what the revert changes", s.paths(s.base.Tree, tree), "M a.txt", "D n.txt")
	equal(t, "a.txt", s.content(tree, "a.txt"), "1\n")

	commit(t, s.source, files{"a.txt": "2 and more\n"})
	s.fetch()
	var conflict *patch.Conflict
	if _, err := s.m.RevertTree(s.ctx, in.Merge, s.base); !errors.As(err, &conflict) {
		t.Fatalf("got %v", err)
	}
	list(t, "conflicts", conflict.Files, "a.txt")
}

func TestMergedMakesARevisionToAskAbout(t *testing.T) {
	s := given(t, files{"a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	base := s.base
	tree := s.changed(files{"a.txt": "one\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	commit(t, s.source, files{"a.txt": "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"})
	s.fetch()
	merged, clean, err := s.m.Merged(s.ctx, base.Tree, tree, s.base.Tree)
	if err != nil || !clean {
		t.Fatal(clean, err)
	}
	equal(t, "merged", s.content(merged, "a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
	commit(t, s.source, files{"a.txt": "uno\n2\n3\n4\n5\n6\n7\n8\nnine\n"})
	s.fetch()
	if _, clean, err = s.m.Merged(s.ctx, base.Tree, tree, s.base.Tree); err != nil || clean {
		t.Error("a conflict came out clean", err)
	}
}

func TestDeletingABranchKeepsItsRevision(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	rev := s.record(s.changed(files{"a.txt": "2\n"}))
	if !strings.HasPrefix(rev.Branch, "gatehouse/coder-fix-retry-loop-") {
		t.Errorf("branch %q", rev.Branch)
	}
	for range 2 {
		if err := s.m.DeleteBranch(s.ctx, rev.Branch); err != nil {
			t.Fatal(err)
		}
	}
	if !s.m.Has(s.ctx, rev.Commit) {
		t.Error("the revision is gone")
	}
	for _, name := range []string{"main", "gatehouse/../../main", "refs/heads/main", "gatehouse/A"} {
		if err := s.m.DeleteBranch(s.ctx, name); err == nil {
			t.Errorf("%q was taken for an agent's branch", name)
		}
	}
}
