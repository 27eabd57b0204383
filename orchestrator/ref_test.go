package orchestrator_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// sendOn makes a task on a ref as ann.
func (w *world) sendOn(to, text, ref, key string) (orchestrator.Delegation, error) {
	_, root, _, err := w.engine.Submit(w.t.Context(), orchestrator.Submission{Agent: to, Text: text, Repository: "app", Ref: ref, Key: key, Via: origin.From(origin.Web),
		RequesterID: w.ann.ID, Requester: "ann"})
	return root, err
}

// Row 6: a commit's id, also that of a revision which people rejected, is no ref. Its
// files would be the base of a patch, delivered with it and never shown.
func TestAnIDIsNoRef(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("coder")...)
	w.script("coder", writes("bad.txt", "nobody wants this\n"))
	w.start()
	w.git("update-ref", "refs/heads/"+w.git("rev-parse", "HEAD"), "HEAD")

	root := w.send("coder", "add it")
	r := w.request(root.TaskID, 1)
	if _, err := w.decide(r, approval.Reject, "no"); err != nil {
		t.Fatal(err)
	}
	main := w.git("rev-parse", "main")
	for _, ref := range []string{r.Revision.Commit, r.Revision.Tree, main, strings.ToUpper(main), r.Revision.Commit[:12], r.Revision.Branch,
		"HEAD", "main~0", "main^{commit}", "refs/heads/main", "refs/gatehouse/rev/" + root.ID} {
		d, err := w.sendOn("coder", "go on from there", ref, "")
		if orchestrator.CodeOf(err) != orchestrator.CodeBadRef {
			t.Errorf("ref %q: %v, %v", ref, d.ID, err)
		}
	}
	if _, err := w.sendOn("coder", "x", "mian", ""); orchestrator.CodeOf(err) != orchestrator.CodeBadRef || !strings.Contains(err.Error(), "app has no branch and no tag mian. There is main") {
		t.Errorf("a branch that is not there: %v", err)
	}
	if _, _, _, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: "coder", Text: "x", Ref: main, RequesterID: w.ann.ID, Requester: "ann"}); orchestrator.CodeOf(err) != orchestrator.CodeBadRef {
		t.Errorf("an id without a repository: %v", err)
	}
}

// A task is not refused because the source is away, or because its branch went after it
// was made; its run says what is missing.
func TestARefIsLookedUpWhereThatIsPossible(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("coder")...)
	w.script("coder", writes("x.txt", "x\n"))
	w.git("branch", "side")
	first, err := w.sendOn("coder", "one", "side", "k")
	if err != nil {
		t.Fatal(err)
	}
	w.git("branch", "-D", "side")
	if again, err := w.sendOn("coder", "one", "side", "k"); err != nil || again.ID != first.ID {
		t.Errorf("the same key again gives %v, %v", again.ID, err)
	}
	if err := os.Rename(w.repo, w.repo+"-away"); err != nil {
		t.Fatal(err)
	}
	away, err := w.sendOn("coder", "two", "later", "")
	if err != nil {
		t.Fatalf("the source is away, and the task is refused: %v", err)
	}
	if err := os.Rename(w.repo+"-away", w.repo); err != nil {
		t.Fatal(err)
	}
	w.start()
	for id, says := range map[string]string{first.ID: "no branch and no tag side", away.ID: "no branch and no tag later"} {
		if d := w.state(id, orchestrator.Failed); d.Error.Code != agent.CodeNoCheckout || !strings.Contains(d.Error.Message, says) {
			t.Errorf("%+v", d.Error)
		}
	}
}

// A task on a tag may be read and answered; what is changed there has nowhere to land,
// also by a child.
func TestATagIsReadOnly(t *testing.T) {
	t.Parallel()
	all := specs("coder", "reader", "lead")
	all[1].AnalysisOnly = true
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", all...)
	w.git("tag", "-a", "-m", "first", "v1")
	w.commit(map[string]string{"later.txt": "x\n"})
	w.script("coder", writes("x.txt", "x\n"))
	w.script("reader", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		entries, err := os.ReadDir(job.Dir)
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		return agenttest.Done(strings.Join(names, " ")), err
	})
	var child agent.Child
	w.script("lead", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		c, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: "write"})
		if err == nil {
			child, err = host.Await(ctx, c.ID)
		}
		return agenttest.Done("asked"), err
	})
	w.start()

	read, err := w.sendOn("reader", "what is there?", "v1", "")
	if err != nil {
		t.Fatal(err)
	}
	if d := w.state(read.ID, orchestrator.Completed); strings.Contains(d.Result.Text, "later.txt") || !strings.Contains(d.Result.Text, "README.md") || d.Work.Tag != "v1" || d.Work.Branch != "" {
		t.Errorf("%q on %+v", d.Result.Text, d.Work.Stand)
	}
	wrote, err := w.sendOn("coder", "change it", "v1", "")
	if err != nil {
		t.Fatal(err)
	}
	d := w.state(wrote.ID, orchestrator.Failed)
	if d.Error.Code != orchestrator.CodeBadRef || !strings.Contains(d.Error.Message, "the tag v1, which is read only") || !strings.Contains(d.Error.Message, "Send the task with a branch.") {
		t.Errorf("%+v", d.Error)
	}
	if w.count(wrote.TaskID, event.PatchRejected) != 1 || !strings.Contains(w.history(wrote.TaskID), `"code":"bad_ref"`) || w.count(wrote.TaskID, event.Requested) != 0 {
		t.Error(w.history(wrote.TaskID))
	}
	led, err := w.sendOn("lead", "have it changed", "v1", "")
	if err != nil {
		t.Fatal(err)
	}
	if d := w.state(led.ID, orchestrator.Completed); child.Error == nil || child.Error.Code != orchestrator.CodeBadRef || w.count(led.TaskID, event.Requested) != 0 || d.Work.Tag != "v1" {
		t.Errorf("the child is %+v", child)
	}
}

// Row 10: people read a change that was made on main, then main was rewound to drop a
// commit. The yes does not bring that back: the change is asked again on main as it is,
// without the commit and without its files.
func TestARewoundBranchIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]string{"apart from the dropped commit": "core/a.txt", "in a file of the dropped commit": "leak.txt"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("coder")...)
			w.script("coder", writes(changes, "changed\n"))
			kept := w.git("rev-parse", "HEAD")
			dropped := w.commit(map[string]string{"leak.txt": "the secret\n"})
			w.start()
			root := w.send("coder", "change it")
			r := w.request(root.TaskID, 1)
			if r.Revision.Base.Branch != "main" || r.Revision.Base.Commit != dropped || r.Revision.Base.At.IsZero() {
				t.Errorf("the request is made on %+v", r.Revision.Base)
			}
			w.git("reset", "-q", "--hard", kept)
			w.approve(r)
			r = w.request(root.TaskID, 2)
			if r.Revision.Base.Commit != kept || r.Revision.Base.Branch != "main" || r.Revision.Base.At.IsZero() {
				t.Errorf("revision 2 is made on %+v", r.Revision.Base)
			}
			if len(r.Revision.Files) != 1 || r.Revision.Files[0].Path != changes {
				t.Errorf("revision 2 changes %+v", r.Revision.Files)
			}
			if h := w.history(root.TaskID); !strings.Contains(h, "main was rewound: it no longer has the commit that this change was made on.") {
				t.Error(h)
			}
			w.approve(r)
			w.state(root.ID, orchestrator.Completed)
			if on := w.git("branch", "main", "--contains", dropped, "--list"); on != "" {
				t.Errorf("%s has the dropped commit again", on)
			}
			if got := w.git("diff", "--name-only", kept, "main"); got != changes {
				t.Errorf("landed %q", got)
			}
		})
	}
}
