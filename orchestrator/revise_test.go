package orchestrator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// changes is a script that writes files, and removes those whose text is "-".
func changes(files map[string]string) agenttest.Script {
	return func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		for name, text := range files {
			if text == "-" {
				if err := os.Remove(filepath.Join(job.Dir, name)); err != nil {
					return agent.Outcome{}, err
				}
				continue
			}
			if err := writeFile(job.Dir, name, text); err != nil {
				return agent.Outcome{}, err
			}
		}
		return agenttest.Done("done"), nil
	}
}

// three is a patch of three files.
var three = map[string]string{"core/a.txt": "one\n2\nthree\n", "core/b.txt": "B\n", "new.txt": "new\n"}

// asked starts a node whose coder makes the files, and waits for the request.
func asked(t *testing.T, url string, files map[string]string, more func(w *world)) (*world, orchestrator.Delegation, approval.Request, people.User) {
	t.Helper()
	w := newWorld(t, url, specs("coder")...)
	cleo := w.user("cleo", people.Approver)
	w.script("coder", changes(files))
	app := w.config.Repositories["app"]
	app.Checks = []string{"make check"}
	w.config.Repositories["app"] = app
	w.engine.SetConfig(w.config)
	if more != nil {
		more(w)
	}
	w.start()
	root := w.send("coder", "Do it")
	return w, root, w.request(root.TaskID, 1), cleo
}

// ballot is a person's verdict on what r shows.
func (w *world) ballot(u people.User, r approval.Request, v approval.Verdict) approval.Ballot {
	return approval.Ballot{RequestID: r.ID, Principal: people.As(u, nil), Channel: "web", Verdict: v, Digest: r.Revision.Digest,
		Revision: r.Revision.N, Seen: approval.Seen{WarningsTicked: approval.Ticks(r)}}
}

func (w *world) some(u people.User, r approval.Request, files ...string) (approval.Request, error) {
	b := w.ballot(u, r, approval.Approve)
	b.Files = files
	return w.gateway.Decide(w.t.Context(), b)
}

func (w *world) edit(u people.User, r approval.Request, edits ...patch.FileEdit) (approval.Request, error) {
	b := w.ballot(u, r, approval.Edit)
	b.Edits = edits
	return w.gateway.Decide(w.t.Context(), b)
}

func (w *world) reread(id string) approval.Request {
	w.t.Helper()
	r, err := w.store.Request(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// refused checks the code of an answer and a part of its sentence.
func (w *world) refused(err error, code, says string) {
	w.t.Helper()
	if orchestrator.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		w.t.Fatalf("answer %q: %v; want %q and %q", orchestrator.CodeOf(err), err, code, says)
	}
}

// votes sets how many yeses everything needs.
func (w *world) votes(need int) {
	c := w.gateway.Config()
	p, problems := policy.CompileRules([]policy.RuleConfig{{Name: "all", When: "true", Need: &need}}, nil)
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	c.Policy = p
	w.gateway.SetConfig(c)
}

func TestSomeFilesAreApprovedAndExactlyThoseLand(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, root, r, _ := asked(t, url, three, nil)
		after, err := w.some(w.bob, r, "core/a.txt", "new.txt")
		w.must(err)
		if after.State != approval.Superseded || after.Decisions[0].Verdict != approval.Approve || !slices.Equal(after.Decisions[0].Files, []string{"core/a.txt", "new.txt"}) {
			t.Fatalf("after the choice: %+v", after)
		}
		d := w.state(root.ID, orchestrator.Completed)
		if got := w.git("diff", "--name-only", "main^1", "main"); got != "core/a.txt\nnew.txt" {
			t.Errorf("landed %q", got)
		}
		if got := w.git("show", "main:core/b.txt"); got != "b" {
			t.Errorf("the declined file has %q", got)
		}
		if !slices.Equal(d.Result.Declined, []string{"core/b.txt"}) {
			t.Errorf("declined in the result: %q", d.Result.Declined)
		}
		r = w.reread(r.ID)
		v := r.Revision
		if r.State != approval.Landed || v.N != 2 || v.Made != approval.MadeByFiles || v.MadeFrom != 1 || !slices.Equal(v.Declined, []string{"core/b.txt"}) ||
			len(v.Files) != 2 || len(v.Checks) != 1 || !v.Checks[0].OK || v.Editor != nil {
			t.Errorf("revision: %+v", v)
		}
		yes := r.Decisions[1]
		if len(r.Decisions) != 2 || yes.Revision != 2 || yes.Digest != v.Digest || yes.UserID != w.bob.ID || yes.Channel != "web" || yes.Comment != "approved these files of revision 1" {
			t.Errorf("the yes that counts on revision 2: %+v", yes)
		}
		if by := w.git("log", "-1", "--format=%(trailers:key=Approved-by,valueonly)", "main"); by != "bob" {
			t.Errorf("approved by %q", by)
		}
		if n := w.count(root.TaskID, event.Superseded); n != 1 {
			t.Errorf("%d superseded events", n)
		}
		revs, err := w.store.Revisions(t.Context(), r.ID)
		w.must(err)
		if len(revs) != 2 || revs[0].State != approval.Superseded || len(revs[0].Files) != 3 {
			t.Errorf("revisions kept: %+v", revs)
		}
	})
}

func TestAChoiceOfAllFilesIsAPlainYes(t *testing.T) {
	t.Parallel()
	w, root, r, _ := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), three, nil)
	_, err := w.some(w.bob, r, "new.txt", "core/a.txt", "core/b.txt", "new.txt")
	w.must(err)
	d := w.state(root.ID, orchestrator.Completed)
	if r = w.reread(r.ID); r.Revision.N != 1 || d.Result.Declined != nil || r.Decisions[0].Files != nil {
		t.Errorf("revision %d, declined %q", r.Revision.N, d.Result.Declined)
	}
}

func TestAChoiceThatCannotBeMadeIsNamedAndStoresNothing(t *testing.T) {
	t.Parallel()
	base := map[string]string{"old.txt": strings.Repeat("the same long line\n", 20), "core/a.txt": "x\n"}
	w, root, r, cleo := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"),
		map[string]string{"old.txt": "-", "moved.txt": base["old.txt"], "core/a.txt": "-", "core/b.txt": "-", "core": "now a file\n", "README.md": "hi\n"},
		func(w *world) {
			w.commit(base)
			w.script("coder", func(ctx context.Context, job agent.Job, h agent.Host) (agent.Outcome, error) {
				w.must(os.RemoveAll(filepath.Join(job.Dir, "core")))
				return changes(map[string]string{"old.txt": "-", "moved.txt": base["old.txt"], "core": "now a file\n", "README.md": "hi\n"})(ctx, job, h)
			})
		})
	for says, files := range map[string][]string{
		`"no/such.txt" is not among the 5 changed files`: {"README.md", "no/such.txt"},
		`"" is not among`:                    {""},
		`"../README.md" is not among`:        {"../README.md"},
		`"readme.md" is not among`:           {"readme.md"},
		"No file is chosen":                  {},
		"core takes the place of core/a.txt": {"core", "core/b.txt"},
	} {
		_, err := w.some(w.bob, r, files...)
		w.refused(err, orchestrator.CodeBadRequest, says)
	}
	_, err := w.some(w.ann, r, "README.md")
	w.refused(err, orchestrator.CodeNotAnApprover, "")
	b := w.ballot(w.bob, r, approval.Reject)
	b.Files = []string{"README.md"}
	_, err = w.gateway.Decide(t.Context(), b)
	w.refused(err, orchestrator.CodeBadRequest, "approve only")
	if got := w.reread(r.ID); got.Version != r.Version || len(got.Decisions) != 0 {
		t.Fatalf("a refused choice changed the request: %+v", got)
	}
	// Half of a rename brings the other half.
	_, err = w.some(cleo, r, "old.txt")
	w.must(err)
	w.state(root.ID, orchestrator.Completed)
	if got := w.git("diff", "--no-renames", "--name-status", "main^1", "main"); got != "A\tmoved.txt\nD\told.txt" {
		t.Errorf("landed %q", got)
	}
}

func TestOthersVoteAgainAfterAChoice(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, three, func(w *world) { w.votes(2) })
		dora := w.user("dora", people.Approver)
		_, err := w.gateway.Decide(t.Context(), w.ballot(dora, r, approval.Approve))
		w.must(err)
		_, err = w.some(w.bob, r, "core/a.txt")
		w.must(err)
		r2 := w.request(root.TaskID, 2)
		n, err := w.gateway.Needs(t.Context(), r2)
		w.must(err)
		if n.Have != 1 || !slices.Equal(approval.Names(n.Missing), []string{"cleo", "dora"}) {
			t.Fatalf("needs: %+v", n)
		}
		_, err = w.gateway.Decide(t.Context(), w.ballot(w.bob, r2, approval.Approve))
		w.refused(err, orchestrator.CodeAlreadyDecided, "a person counts once")
		_, err = w.gateway.Decide(t.Context(), w.ballot(cleo, r, approval.Approve))
		w.refused(err, orchestrator.CodeSuperseded, "Revision 2")
		// Bob takes his yes back, as he could take back any other.
		_, err = w.gateway.Decide(t.Context(), w.ballot(w.bob, r2, approval.Withdraw))
		w.must(err)
		_, err = w.gateway.Decide(t.Context(), w.ballot(cleo, r2, approval.Approve))
		w.must(err)
		if got := w.reread(r.ID); got.State != approval.Pending {
			t.Fatalf("one yes of two, and it is %s", got.State)
		}
		_, err = w.gateway.Decide(t.Context(), w.ballot(dora, r2, approval.Approve))
		w.must(err)
		w.state(root.ID, orchestrator.Completed)
		if got := w.git("diff", "--name-only", "main^1", "main"); got != "core/a.txt" {
			t.Errorf("landed %q", got)
		}
	})
}

func TestAChoiceThatBreaksACheckIsAskedAgain(t *testing.T) {
	t.Parallel()
	w, root, r, _ := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), map[string]string{"broken": "-", "core/a.txt": "2\n"}, func(w *world) {
		w.commit(map[string]string{"broken": "x\n"})
	})
	if !r.Revision.Checks[0].OK {
		t.Fatal("the whole patch passes the check")
	}
	_, err := w.some(w.bob, r, "core/a.txt")
	w.must(err)
	r = w.request(root.TaskID, 2)
	note := ""
	for _, n := range r.Revision.Notes {
		if n.Code == approval.NoteAskedAgain {
			note = n.Text
		}
	}
	if len(r.Decisions) != 1 || !strings.Contains(note, "bob approved these files of revision 1 and is asked again: without the other files there is a check that fails now: make check") {
		t.Fatalf("decisions %+v, note %q", r.Decisions, note)
	}
	w.approve(r) // with the failed check before him
	w.state(root.ID, orchestrator.Completed)
}

func TestAnEditIsARevisionThatItsEditorCannotApprove(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, three, func(w *world) {
			c := w.gateway.Config()
			c.FourEyes = false // the editor is barred in any case
			w.gateway.SetConfig(c)
		})
		crlf := "one\r\ntwo\r\nno newline at the end"
		_, err := w.edit(w.bob, r, patch.FileEdit{Path: "core/a.txt", Text: crlf}, patch.FileEdit{Path: "core/b.txt", Delete: true}, patch.FileEdit{Path: "docs/x.md", Text: "new\n"})
		w.must(err)
		r2 := w.request(root.TaskID, 2)
		v := r2.Revision
		if v.Made != approval.MadeByEdit || v.MadeFrom != 1 || v.Editor == nil || v.Editor.UserID != w.bob.ID || len(v.Files) != 4 || len(v.Checks) != 1 || len(v.Declined) != 0 {
			t.Fatalf("revision: %+v", v)
		}
		_, err = w.gateway.Decide(t.Context(), w.ballot(w.bob, r2, approval.Approve))
		w.refused(err, orchestrator.CodeFourEyes, "You edited this revision")
		n, err := w.gateway.Needs(t.Context(), r2)
		w.must(err)
		if slices.Contains(approval.Names(n.Missing), "bob") {
			t.Errorf("missing: %v", n.Missing)
		}
		// Whoever chooses among what another edited leaves that person's hand in it.
		_, err = w.some(cleo, r2, "core/a.txt", "core/b.txt")
		w.must(err)
		d := w.state(root.ID, orchestrator.Completed)
		if got := w.reread(r.ID).Revision; got.N != 3 || got.Editor == nil || got.Editor.User != "bob" || !slices.Equal(d.Result.Declined, []string{"docs/x.md", "new.txt"}) {
			t.Errorf("revision %+v, declined %q", got, d.Result.Declined)
		}
		if got := w.git("cat-file", "-p", "main:core/a.txt"); got != strings.TrimSpace(crlf) {
			t.Errorf("landed %q", got)
		}
		for _, commit := range []string{"main", "main^2"} {
			if got := w.git("log", "--format=%(trailers:key=Edited-by,valueonly,separator=)", "-1", commit); got != "bob" {
				t.Errorf("%s was edited by %q", commit, got)
			}
		}
	})
}

func TestTwoEditorsAreBothBarred(t *testing.T) {
	t.Parallel()
	w, root, r, cleo := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), three, nil)
	dora := w.user("dora", people.Approver)
	_, err := w.edit(w.bob, r, patch.FileEdit{Path: "new.txt", Text: "bob's\n"})
	w.must(err)
	b := w.ballot(cleo, w.request(root.TaskID, 2), approval.Edit)
	b.Patch = "--- a/new.txt\n+++ b/new.txt\n@@ -1 +1,2 @@\n bob's\n+cleo's\n"
	_, err = w.gateway.Decide(t.Context(), b)
	w.must(err)
	r = w.request(root.TaskID, 3)
	for _, u := range []people.User{w.bob, cleo} {
		_, err = w.gateway.Decide(t.Context(), w.ballot(u, r, approval.Approve))
		w.refused(err, orchestrator.CodeFourEyes, "dora")
	}
	_, err = w.gateway.Decide(t.Context(), w.ballot(dora, r, approval.Approve))
	w.must(err)
	w.state(root.ID, orchestrator.Completed)
	if got := w.git("show", "main:new.txt"); got != "bob's\ncleo's" {
		t.Errorf("landed %q", got)
	}
}

// An edit obeys the rules of the agent's own patch, and is text.
func TestAnEditThatIsNotTakenStoresNothing(t *testing.T) {
	t.Parallel()
	w, _, r, _ := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), three, func(w *world) {
		w.commit(map[string]string{"bin": "a\x00b", "latin1.txt": "caf\xe9\n"})
		w.must(os.Symlink("README.md", filepath.Join(w.repo, "link")))
		w.commit(nil)
		app := w.config.Repositories["app"]
		app.Protect = []string{"secrets/**"}
		w.config.Repositories["app"] = app
		registry, err := agent.NewRegistry([]agent.Spec{{Name: "coder", Kind: agent.Command, Writes: []string{"core/**", "*.txt", "bin", "link", "secrets/**"}}})
		w.must(err)
		w.config.Agents = registry
		w.engine.SetConfig(w.config)
	})
	file := func(path, text string) []patch.FileEdit { return []patch.FileEdit{{Path: path, Text: text}} }
	for name, c := range map[string]struct {
		edits []patch.FileEdit
		patch string
		code  string
	}{
		"nothing changes":      {edits: file("core/b.txt", "B\n"), code: orchestrator.CodeBadRequest},
		"all is taken back":    {edits: []patch.FileEdit{{Path: "core/a.txt", Text: "one\ntwo\nthree\n"}, {Path: "core/b.txt", Text: "b\n"}, {Path: "new.txt", Delete: true}}, code: orchestrator.CodeBadRequest},
		"no edits":             {code: orchestrator.CodeBadRequest},
		"both":                 {edits: file("core/b.txt", "x\n"), patch: "--- a\n", code: orchestrator.CodeBadRequest},
		"protected":            {edits: file("secrets/key", "x\n"), code: patch.CodePathProtected},
		"not writable":         {edits: file("README.md", "x\n"), code: patch.CodePathOutside},
		"up and away":          {edits: file("../x", "x\n"), code: patch.CodePathOutside},
		"absolute":             {edits: file("/etc/passwd", "x\n"), code: patch.CodePathOutside},
		"no path":              {edits: file("", "x\n"), code: patch.CodePathOutside},
		"git's own":            {edits: file(".GIT/config", "x\n"), code: patch.CodeGitInternal},
		"binary file":          {edits: file("bin", "text\n"), code: patch.CodeMalformed},
		"binary text":          {edits: file("core/b.txt", "a\x00b"), code: patch.CodeMalformed},
		"not UTF-8":            {edits: file("latin1.txt", "café\n"), code: patch.CodeMalformed},
		"a link":               {edits: file("link", "core/a.txt"), code: patch.CodeSymlink},
		"a folder":             {edits: file("core", "x\n"), code: patch.CodeContextMismatch},
		"below a file":         {edits: file("new.txt/x", "x\n"), code: patch.CodeContextMismatch},
		"twice":                {edits: append(file("new.txt", "x\n"), file("new.txt", "y\n")...), code: patch.CodeDuplicateFile},
		"deletes nothing":      {edits: []patch.FileEdit{{Path: "core/none", Delete: true}}, code: patch.CodeContextMismatch},
		"too large":            {edits: file("core/b.txt", strings.Repeat("x", 17<<20)), code: patch.CodeTooLarge},
		"a key":                {edits: file("core/b.txt", "-----BEGIN OPENSSH "+"PRIVATE KEY-----\n"+strings.Repeat("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n", 8)+"-----END OPENSSH "+"PRIVATE KEY-----\n"), code: patch.CodeSecret},
		"a patch of the base":  {patch: "--- a/core/b.txt\n+++ b/core/b.txt\n@@ -1 +1 @@\n-b\n+c\n", code: patch.CodeContextMismatch},
		"no patch at all":      {patch: "hello\n", code: patch.CodeMalformed},
		"a patch that escapes": {patch: "--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+c\n", code: patch.CodePathOutside},
	} {
		b := w.ballot(w.bob, r, approval.Edit)
		b.Edits, b.Patch = c.edits, c.patch
		if _, err := w.gateway.Decide(t.Context(), b); orchestrator.CodeOf(err) != c.code {
			t.Errorf("%s: %q %v; want %q", name, orchestrator.CodeOf(err), err, c.code)
		}
	}
	old := w.ballot(w.bob, r, approval.Edit)
	old.Digest, old.Edits = strings.Repeat("0", 64), file("core/b.txt", "x\n")
	_, err := w.gateway.Decide(t.Context(), old)
	w.refused(err, orchestrator.CodeSuperseded, "")
	_, err = w.edit(w.ann, r, file("core/b.txt", "x\n")...)
	w.refused(err, orchestrator.CodeNotAnApprover, "")
	if got := w.reread(r.ID); got.Version != r.Version || len(got.Decisions) != 0 || got.State != approval.Pending {
		t.Errorf("a refused edit changed the request: %+v", got)
	}
}

func TestOfTwoChoicesAtOnceTheFirstWins(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, three, func(w *world) { w.votes(2) })
		var wg sync.WaitGroup
		errs := make([]error, 2)
		wg.Go(func() { _, errs[0] = w.some(w.bob, r, "core/a.txt") })
		wg.Go(func() { _, errs[1] = w.some(cleo, r, "new.txt") })
		wg.Wait()
		lost := errs[0]
		if lost == nil {
			lost = errs[1]
		}
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("both or none won: %v", errs)
		}
		w.refused(lost, orchestrator.CodeSuperseded, "evision 2")
		r2 := w.request(root.TaskID, 2)
		if len(r2.Revision.Files) != 1 || len(r2.Decisions) != 2 || r2.Decisions[0].UserID != r2.Decisions[1].UserID {
			t.Errorf("revision 2: %+v %+v", r2.Revision.Files, r2.Decisions)
		}
	})
}

// What was chosen or edited is asked again when the branch moved in one of its files,
// and lands as it is when it moved elsewhere.
func TestRevisionsOfPeopleOnABranchThatMoves(t *testing.T) {
	t.Run("elsewhere", func(t *testing.T) {
		w, root, r, _ := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), three, nil)
		w.commit(map[string]string{"core/b.txt": "moved in the declined file\n"})
		_, err := w.some(w.bob, r, "core/a.txt")
		w.must(err)
		w.state(root.ID, orchestrator.Completed)
		if a, b := w.git("show", "main:core/a.txt"), w.git("show", "main:core/b.txt"); a != "one\n2\nthree" || b != "moved in the declined file" {
			t.Errorf("landed %q and %q", a, b)
		}
	})
	either(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, map[string]string{"core/a.txt": "one\ntwo\n3\n", "core/b.txt": "B\n"}, func(w *world) {
			w.commit(map[string]string{"core/a.txt": "zero\n\n\n\none\ntwo\nthree\n"})
			w.script("coder", changes(map[string]string{"core/a.txt": "zero\n\n\n\none\ntwo\n3\n", "core/b.txt": "B\n"}))
		})
		w.commit(map[string]string{"core/a.txt": "null\n\n\n\none\ntwo\nthree\n"})
		_, err := w.some(w.bob, r, "core/a.txt")
		w.must(err)
		r3 := w.request(root.TaskID, 3)
		if v := r3.Revision; v.Made != approval.MadeByFiles || len(r3.Decisions) != 2 || len(v.Files) != 1 {
			t.Fatalf("asked again: %+v %+v", v, r3.Decisions)
		}
		_, err = w.edit(w.bob, r3, patch.FileEdit{Path: "core/a.txt", Text: "null\n\n\n\none\ntwo\nthree!\n"})
		w.must(err)
		r4 := w.request(root.TaskID, 4)
		w.commit(map[string]string{"core/a.txt": "nought\n\n\n\none\ntwo\nthree\n"})
		_, err = w.gateway.Decide(t.Context(), w.ballot(cleo, r4, approval.Approve))
		w.must(err)
		r5 := w.request(root.TaskID, 5)
		_, err = w.gateway.Decide(t.Context(), w.ballot(w.bob, r5, approval.Approve))
		w.refused(err, orchestrator.CodeFourEyes, "You edited this revision")
		_, err = w.gateway.Decide(t.Context(), w.ballot(cleo, r5, approval.Approve))
		w.must(err)
		d := w.state(root.ID, orchestrator.Completed)
		if got := w.git("show", "main:core/a.txt"); got != "nought\n\n\n\none\ntwo\nthree!" || !slices.Equal(d.Result.Declined, []string{"core/b.txt"}) {
			t.Errorf("landed %q, declined %q", got, d.Result.Declined)
		}
	})
}

// A revision of people that was stored when its node stopped is checked and asked by
// the next start, and the yes that made it counts on it.
func TestARevisionOfPeopleSurvivesARestart(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w, root, r, _ := asked(t, url, three, nil)
		w.stop()
		_, err := w.some(w.bob, r, "new.txt")
		w.must(err)
		if d := w.state(root.ID, orchestrator.Checking); d.Work.Made == nil || d.Work.Made.Yes == "" {
			t.Fatalf("made: %+v", d.Work.Made)
		}
		w.refused(errOf(w.decide(r, approval.Reject, "")), orchestrator.CodeSuperseded, "bob approved 1 file of this")
		w.refused(errOf(w.decide(r, approval.Withdraw, "")), orchestrator.CodeSuperseded, "Decide on 2")
		w.open(url)
		w.start()
		w.state(root.ID, orchestrator.Completed)
		if got := w.git("diff", "--name-only", "main^1", "main"); got != "new.txt" {
			t.Errorf("landed %q", got)
		}
	})
}

func errOf(_ approval.Request, err error) error { return err }

func TestATaskIsCancelledWhileARevisionOfPeopleIsChecked(t *testing.T) {
	t.Parallel()
	w, root, r, _ := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), three, nil)
	w.stop()
	_, err := w.some(w.bob, r, "new.txt")
	w.must(err)
	_, err = w.engine.Cancel(t.Context(), root.TaskID, "ann")
	w.must(err)
	if got := w.reread(r.ID); got.State != approval.Cancelled {
		t.Errorf("the request is %s", got.State)
	}
}

// The agent works again from the branch, so what people left out or edited before is no
// revision of theirs. But the agent was told of it, so who edited still does not approve.
func TestChangesAskedAfterAnEditStartAnew(t *testing.T) {
	t.Parallel()
	w, root, r, cleo := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), three, nil)
	_, err := w.edit(w.bob, r, patch.FileEdit{Path: "new.txt", Text: "edited\n"})
	w.must(err)
	_, err = w.decide(w.request(root.TaskID, 2), approval.RequestChanges, "again")
	w.must(err)
	r = w.request(root.TaskID, 3)
	if v := r.Revision; v.Made != "" || v.Editor != nil || v.MadeFrom != 0 {
		t.Errorf("revision: %+v", v)
	}
	w.refused(errOf(w.decide(r, approval.Approve, "")), orchestrator.CodeFourEyes, "You edited an earlier revision")
	_, err = w.gateway.Decide(t.Context(), w.ballot(cleo, r, approval.Approve))
	w.must(err)
	w.state(root.ID, orchestrator.Completed)
}

func TestAChoiceIsNotCountedForSomebodyWhoLostTheRight(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "db")
	w, root, r, cleo := asked(t, url, three, nil)
	w.stop()
	_, err := w.some(w.bob, r, "new.txt")
	w.must(err)
	w.open(url)
	c, need := w.gateway.Config(), 1
	c.Groups = map[string][]string{"core": {"cleo"}}
	policy, problems := policy.CompileRules([]policy.RuleConfig{{Name: "core", When: "true", Need: &need, From: []string{"core"}}}, c.Groups)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c.Policy = policy
	w.gateway.SetConfig(c)
	w.start()
	r = w.request(root.TaskID, 2)
	if i := slices.IndexFunc(r.Revision.Notes, func(n patch.Note) bool { return n.Code == approval.NoteAskedAgain }); i < 0 || len(r.Decisions) != 1 {
		t.Fatalf("notes %+v, decisions %+v", r.Revision.Notes, r.Decisions)
	}
	_, err = w.gateway.Decide(t.Context(), w.ballot(cleo, r, approval.Approve))
	w.must(err)
	w.state(root.ID, orchestrator.Completed)
}

// The server that takes the verdict need not be the one that made the patch.
func TestANodeThatNeverSawTheRepositoryMakesTheRevision(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, three, nil)
		w.stop()
		w.data = t.TempDir()
		w.open(url)
		_, err := w.edit(w.bob, r, patch.FileEdit{Path: "core/b.txt", Text: "edited\n"})
		w.must(err)
		w.data = t.TempDir()
		w.open(url)
		w.start()
		r = w.request(root.TaskID, 2)
		w.must(w.gateway.SaveDraft(t.Context(), people.As(cleo, nil), r.ID, 2, approval.Draft{Path: "core/b.txt", Line: 1, Text: "good"}))
		_, err = w.some(cleo, r, "core/b.txt")
		w.must(err)
		w.state(root.ID, orchestrator.Completed)
		if got := w.git("show", "main:core/b.txt"); got != "edited" {
			t.Errorf("landed %q", got)
		}
	})
}

// The yes that was carried over is taken back like any other while the landing waits.
func TestACarriedYesIsWithdrawnBeforeTheLanding(t *testing.T) {
	t.Parallel()
	w, root, r, cleo := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), three, nil)
	w.write(w.repo, "core/a.txt", "work in the way\n") // the folder is dirty, so the landing is held
	_, err := w.some(w.bob, r, "core/a.txt")
	w.must(err)
	w.until(root.ID, "held", func(d orchestrator.Delegation) bool { return d.Work.Problem != "" })
	r = w.reread(r.ID)
	if r.State != approval.Approved || r.Revision.N != 2 {
		t.Fatalf("%s at revision %d", r.State, r.Revision.N)
	}
	_, err = w.gateway.Decide(t.Context(), w.ballot(w.bob, r, approval.Withdraw))
	w.must(err)
	w.state(root.ID, orchestrator.AwaitingApproval)
	w.git("checkout", "--", ".")
	_, err = w.gateway.Decide(t.Context(), w.ballot(cleo, r, approval.Approve))
	w.must(err)
	w.state(root.ID, orchestrator.Completed)
	if by := w.git("log", "-1", "--format=%(trailers:key=Approved-by,valueonly)", "main"); by != "cleo" {
		t.Errorf("approved by %q", by)
	}
}

// Whoever edits, and then has the agent make just that, approves what they have written.
func TestAnAgentThatIsToldToRepeatAnEditDoesNotFreeItsEditor(t *testing.T) {
	t.Parallel()
	w, root, r, cleo := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), nil, func(w *world) {
		w.script("coder", func(ctx context.Context, job agent.Job, h agent.Host) (agent.Outcome, error) {
			text := "the agent's\n"
			if job.Feedback != nil {
				text = "bob's\n"
			}
			return changes(map[string]string{"new.txt": text})(ctx, job, h)
		})
	})
	_, err := w.edit(w.bob, r, patch.FileEdit{Path: "new.txt", Text: "bob's\n"})
	w.must(err)
	r = w.request(root.TaskID, 2)
	_, err = w.decide(r, approval.RequestChanges, "Make new.txt say: bob's")
	w.must(err)
	r = w.request(root.TaskID, 3)
	_, err = w.gateway.Decide(t.Context(), w.ballot(w.bob, r, approval.Approve))
	w.refused(err, orchestrator.CodeFourEyes, "You edited an earlier revision")
	_, err = w.gateway.Decide(t.Context(), w.ballot(cleo, r, approval.Approve))
	w.must(err)
	w.state(root.ID, orchestrator.Completed)
}

// What was lost before people were asked, or while a landing was held up, is over: the
// next run has all its attempts.
func TestLossesOfBeforeAreForgottenWhenTheWorkComesOn(t *testing.T) {
	t.Parallel()
	tries := 0
	w, root, r, _ := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), nil, func(w *world) {
		w.script("coder", func(ctx context.Context, job agent.Job, h agent.Host) (agent.Outcome, error) {
			if tries++; tries == 2 {
				return agent.Outcome{}, errors.New("a hiccup of the machinery")
			}
			return changes(three)(ctx, job, h)
		})
	})
	w.must(w.store.InTask(t.Context(), root.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(t.Context(), root.ID)
		if err != nil {
			return err
		}
		d.Losses = 20
		return tx.Move(t.Context(), d, d.State, d.Attempt)
	}))
	_, err := w.decide(r, approval.RequestChanges, "again")
	w.must(err)
	w.approve(w.request(root.TaskID, 2))
	w.state(root.ID, orchestrator.Completed)
}
