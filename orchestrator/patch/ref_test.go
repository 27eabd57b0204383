package patch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/patch"

	"pgregory.net/rapid"
)

// A ref is the name of a branch or a tag; nothing else that git understands is taken.
func TestARefIsAName(t *testing.T) {
	id := strings.Repeat("8c2d862ae7", 4)
	for _, ref := range []string{"", "main", "release/1.2", "v1.2", "feature/ö", "origin/main", "deadbeef", "a@b", "main.x", "heads/main"} {
		if err := patch.CheckRef(ref); err != nil {
			t.Errorf("%q: %v", ref, err)
		}
	}
	for ref, says := range map[string]string{
		id: "is the id of a commit", strings.ToUpper(id): "is the id of a commit", id + id[:24]: "is the id of a commit",
		"HEAD": "checked out", "head": "checked out", "@": "checked out",
		"main~1": "is no name", "main^": "is no name", "main^{tree}": "is no name", "main^{commit}": "is no name", "main..side": "is no name",
		"main...side": "is no name", "main@{1}": "is no name", "@{-1}": "is no name", "main:a.txt": "is no name", ":/fix": "is no name", "^main": "is no name",
		"-h": "is no name", "--all": "is no name", "a b": "is no name", "a\x00b": "is no name", "a\nb": "is no name", "ma*": "is no name", "a//b": "is no name",
		"/main": "is no name", "main/": "is no name", ".main": "is no name", "a/.b": "is no name", "main.lock": "is no name", "main.": "is no name",
		"a\\b": "is no name", "\xff": "is no name", strings.Repeat("a", 300): "is no name",
		"refs/heads/main": "Give the short one: main", "refs/tags/v1": "Give the short one: v1", "refs/remotes/origin/main": "is no branch or tag",
		"refs/gatehouse/rev/dlg_1": "is no branch or tag", "refs/source-tags/v1": "is no branch or tag", "Refs/heads/main": "is no branch or tag",
		"gatehouse/coder-x-123456": "branch of an agent", "Gatehouse/x": "branch of an agent", "gatehouse": "branch of an agent",
	} {
		var bad *patch.RefError
		if err := patch.CheckRef(ref); !errors.As(err, &bad) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", ref, err, says)
		}
	}
}

// A branch and a tag of the source are found by their full names, whatever else is
// called so: a branch before a tag, a branch that looks like the beginning of an id, and
// none of ours.
func TestStartFindsBranchesAndTagsOfTheSource(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	first := s.base
	git(t, s.source, "tag", "v1")
	git(t, s.source, "tag", "-a", "-m", "annotated", "v1a")
	git(t, s.source, "tag", "-a", "-m", "a tag of a tag", "v1b", "v1a")
	git(t, s.source, "tag", "tree-only", "HEAD^{tree}")
	git(t, s.source, "branch", first.Commit[:10])
	git(t, s.source, "branch", "v2")
	head := commit(t, s.source, files{"a.txt": "2\n"})
	git(t, s.source, "tag", "v2")
	git(t, s.source, "update-ref", "refs/heads/"+first.Commit, head)
	git(t, s.source, "update-ref", "refs/heads/gatehouse/x", head)
	s.fetch()
	rev := s.record(s.changed(files{"a.txt": "3\n"}))

	start := func(ref string) (patch.Start, error) { return s.m.Start(s.ctx, ref) }
	for ref, want := range map[string]patch.Start{
		"": {Base: patch.Base{Branch: "main", Commit: head}}, "main": {Base: patch.Base{Branch: "main", Commit: head}},
		"v1": {Base: patch.Base{Commit: first.Commit}, Tag: "v1"}, "v1a": {Base: patch.Base{Commit: first.Commit}, Tag: "v1a"},
		"v1b": {Base: patch.Base{Commit: first.Commit}, Tag: "v1b"},
		"v2":  {Base: patch.Base{Branch: "v2", Commit: first.Commit}}, first.Commit[:10]: {Base: patch.Base{Branch: first.Commit[:10], Commit: first.Commit}},
	} {
		got, err := start(ref)
		if err != nil || got.Branch != want.Branch || got.Tag != want.Tag || got.Commit != want.Commit || got.Tree == "" || got.At.IsZero() {
			t.Errorf("%q: %+v, %v", ref, got, err)
		}
	}
	for _, ref := range []string{first.Commit, rev.Commit, rev.Commit[:12], rev.Branch, "gatehouse/x", "tree-only", "origin/main", "heads/main", "tags/v1", "nope", "source-tags/v1"} {
		if got, err := start(ref); err == nil {
			t.Errorf("%q is taken for %+v", ref, got)
		}
	}

	dir := s.checkout()
	if tags := git(t, dir, "tag", "--list"); tags != "" {
		t.Errorf("the checkout has the tags %q", tags)
	}
	git(t, s.source, "tag", "-d", "v1")
	s.fetch()
	if got, err := start("v1"); err == nil {
		t.Errorf("a tag that was removed is still %+v", got)
	}
}

// Whether the source has a ref is asked once, without fetching; the nearest names help.
func TestKnowsLooksAtTheSource(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	git(t, s.source, "branch", "release")
	git(t, s.source, "tag", "v1")
	git(t, s.source, "branch", "gatehouse/releas")
	for ref, want := range map[string]bool{"main": true, "release": true, "v1": true, "releas": false, "gatehouse/releas": false} {
		found, near, err := s.m.Knows(s.ctx, ref)
		if err != nil || found != want && ref != "gatehouse/releas" {
			t.Errorf("%q: %v, %v", ref, found, err)
		}
		if ref == "releas" && (len(near) != 3 || near[0] != "release") {
			t.Errorf("near %q are %q", ref, near)
		}
	}
	fresh := patch.NewMirrors(t.TempDir(), patch.Options{}).Open(s.m.Repository())
	if found, _, err := fresh.Knows(s.ctx, "release"); err != nil || !found {
		t.Errorf("without a mirror: %v, %v", found, err)
	}
}

// Row 10: main was rewound to drop a commit. What was approved on that commit does not
// bring it back, although no file of it is in the way.
func TestARewoundBranchIsStale(t *testing.T) {
	for _, deliver := range []string{patch.DeliverMerge, patch.DeliverBranch} {
		t.Run(deliver, func(t *testing.T) {
			s := given(t, files{"a.txt": "1\n", "b.txt": "1\n"}, func(r *patch.Repository, _ *patch.Options) { r.Deliver = deliver })
			kept := s.base
			dropped := commit(t, s.source, files{"leak.txt": "secret\n"})
			s.fetch()
			tree := s.changed(files{"a.txt": "2\n"})
			planned := s.mustPlan(tree)
			git(t, s.source, "reset", "-q", "--hard", kept.Commit)
			commit(t, s.source, files{"b.txt": "2\n"})

			_, err := s.plan(tree)
			var moved *patch.Moved
			if !errors.As(err, &moved) || moved.Why != patch.MovedRewound || !strings.Contains(err.Error(), "main was rewound: it no longer has the commit that this change was made on.") {
				t.Fatalf("planned on a branch that was rewound: %v", err)
			}
			if err := s.m.Land(s.ctx, planned, nil); err == nil {
				t.Error("an intent from before the rewind was pushed")
			}
			if git(t, s.source, "branch", "--contains", dropped) != "" {
				t.Error("the dropped commit is back in history")
			}
			onto, err := s.m.Branch(s.ctx, "main")
			if err != nil {
				t.Fatal(err)
			}
			// What is asked again has the agent's change and not the dropped one.
			merged, clean, err := s.m.Merged(s.ctx, s.base.Tree, tree, onto.Tree)
			if err != nil || !clean {
				t.Fatalf("combining: %v, %v", clean, err)
			}
			list(t, "the new revision against the branch", s.paths(onto.Tree, merged), "M a.txt")
		})
	}
}

// A commit that has another parent than the base of the approval does not land, even
// where the branch has that base.
func TestACommitWithAnotherHistoryDoesNotLand(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	first := s.base
	hidden := s.record(s.changed(files{"hidden.txt": "x\n"}))
	tree := s.changed(files{"a.txt": "2\n"})
	onto, err := s.m.Record(s.ctx, patch.RecordSpec{Key: "dlg_2-1", Base: hidden.Commit, Tree: tree, Title: "t", Agent: "coder", Delegation: "dlg_2", At: at})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.m.PlanLanding(s.ctx, patch.LandSpec{Base: first, Commit: onto.Commit, Branch: onto.Branch, Tree: tree, Title: "t", At: at})
	var moved *patch.Moved
	if !errors.As(err, &moved) || moved.Why != patch.MovedForeign {
		t.Errorf("got %v", err)
	}
	// A request of an older version, whose base is a revision of ours.
	hiddenTree, err := s.m.TreeOf(s.ctx, hidden.Commit)
	if err != nil {
		t.Fatal(err)
	}
	for branch, why := range map[string]patch.MovedWhy{"": patch.MovedUnnamed, "gatehouse/x": patch.MovedUnnamed, "main": patch.MovedRewound} {
		_, err = s.m.PlanLanding(s.ctx, patch.LandSpec{Base: patch.Base{Branch: branch, Commit: hidden.Commit, Tree: hiddenTree}, Commit: onto.Commit, Branch: onto.Branch, Tree: tree, At: at})
		if !errors.As(err, &moved) || moved.Why != why || moved.Branch != "main" {
			t.Errorf("target %q: %v", branch, err)
		}
	}
}

// propTime bounds the random histories, whatever rapid.checks says.
const propTime = 2 * time.Second

// However the branch goes on, is rewound or rewritten: what a landing adds to it is the
// approved commit and the merge, and the tree differs from the head before by the change.
func TestLandingBringsTheApprovedCommitAlone(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n"})
	landed, until := 0, time.Now().Add(propTime)
	rapid.Check(t, func(rt *rapid.T) {
		if time.Now().After(until) && landed > 0 {
			return
		}
		commit(t, s.source, files{"start.txt": rapid.StringMatching("[a-z]{12}").Draw(rt, "start")})
		s.fetch()
		points := []string{s.base.Commit}
		tree := s.changed(files{"a.txt": rapid.StringMatching("[a-z]{12}").Draw(rt, "theirs") + "\n"})
		rev := s.record(tree)
		spec := patch.LandSpec{Base: s.base, Commit: rev.Commit, Branch: rev.Branch, Tree: tree, Title: "t", At: at}
		for range rapid.IntRange(0, 3).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"on", "on", "back", "amend"}).Draw(rt, "step") {
			case "on":
				points = append(points, commit(t, s.source, files{"b.txt": rapid.StringMatching("[a-z]{12}").Draw(rt, "b")}))
			case "back":
				if git(t, s.source, "rev-list", "--count", "main") != "1" {
					git(t, s.source, "reset", "-q", "--hard", "HEAD~1")
				}
			case "amend":
				write(t, s.source, files{"c.txt": rapid.StringMatching("[a-z]{12}").Draw(rt, "c")})
				git(t, s.source, "commit", "-q", "-a", "--amend", "-m", "again")
			}
		}
		before := git(t, s.source, "rev-parse", "main")
		has := slices.Contains(strings.Fields(git(t, s.source, "rev-list", "main")), spec.Base.Commit)
		in, err := s.m.PlanLanding(s.ctx, spec)
		var moved *patch.Moved
		if !has {
			if !errors.As(err, &moved) || moved.Why != patch.MovedRewound {
				rt.Fatalf("the base is gone from main, and the plan is %v", err)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		if err := s.m.Land(s.ctx, in, nil); err != nil {
			rt.Fatal(err)
		}
		landed++
		brought := strings.Fields(git(t, s.source, "rev-list", "main", "^"+before))
		slices.Sort(brought)
		want := []string{in.Merge, rev.Commit}
		slices.Sort(want)
		if !slices.Equal(brought, want) {
			rt.Fatalf("landing brought %v, want %v", brought, want)
		}
		if got := git(t, s.source, "diff", "--name-only", before, "main"); got != "a.txt" {
			rt.Fatalf("landing changed %q", got)
		}
	})
	if landed == 0 {
		t.Error("no case landed")
	}
}
