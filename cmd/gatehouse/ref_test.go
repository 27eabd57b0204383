package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"
)

// refTeam has an agent that changes a file, one that only reads, and a trigger on a
// branch that there is not.
const refTeam = `
engine: {workers: 2}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder: {kind: command, repository: app, env: {PLACE: MARK}, command: [sh, -c, 'cat > "note-$GATEHOUSE_TASK_ID.txt"']}
  reader: {kind: command, repository: app, analysis_only: true, env: {PLACE: MARK}, command: [sh, -c, 'ls']}
  lead: {kind: command, repository: app, env: {PLACE: MARK}, command: [sh, -c, 'echo draft > draft.txt; gatehouse delegate helper "Look at the draft"; rm draft.txt']}
  helper: {kind: command, repository: app, analysis_only: true, ask_first: true, env: {PLACE: MARK}, command: [cat, draft.txt]}
triggers:
  - {name: gone, kind: webhook, source: gitlab, secret: "a token for GitLab alone", agent: coder, repository: app, ref: mian, task: "Do {{.x}}", owner: ann}
`

// Rows 6 and 10 on a running server: no door takes an id for a ref, a tag is for reading,
// and main does not get back what people dropped from it.
func TestARefIsABranchOrATagOfTheSource(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), refTeam)
	placetest.Git(t, p.Repo, "tag", "v1")
	n := p.Start(p.Config, "")
	rejected := n.Send("coder", "app", "something bad")
	r := p.Asked(rejected)
	if r.Revision.Base.Branch != "main" || r.Revision.Base.Commit != placetest.Git(t, p.Repo, "rev-parse", "main") {
		t.Errorf("the request is for %+v", r.Revision.Base)
	}
	if status, _ := giveVerdict(n, n.Approver, r.ID, map[string]any{"verdict": "reject", "digest": r.Revision.Digest, "comment": "no"}); status != http.StatusOK {
		t.Fatalf("rejecting: %d", status)
	}
	takesNoID(n, r)
	readsATag(n)
	handsOnFromATag(n)
	keepsWhatWasDropped(n)
	n.Stop()
	if n.Code() != 0 {
		t.Errorf("the server ended with %d", n.Code())
	}
}

// takesNoID asks at every door that takes a ref.
func takesNoID(n *placetest.Node, rejected approval.Request) {
	n.Helper()
	main := placetest.Git(n.T, n.Repo, "rev-parse", "main")
	placetest.Git(n.T, n.Repo, "update-ref", "refs/heads/"+main, main) // a branch that is called like an id
	for _, ref := range []string{main, rejected.Revision.Commit, rejected.Revision.Branch, "refs/gatehouse/rev/" + rejected.DelegationID, "HEAD", "main~0", "mian"} {
		var told problem
		status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "coder", Text: "Go on", Repository: "app", Ref: ref}, &told)
		if n.Must(err); status != http.StatusBadRequest || told.Code != orchestrator.CodeBadRef || told.Detail == "" {
			n.Errorf("ref %q: %d %+v", ref, status, told)
		}
		out, code := n.Cli(n, "--token", n.Asker, "send", "coder", "Go on", "--repo", "app", "--ref", ref)
		if code != console.ExitUsage || !strings.Contains(out, "bad_ref") {
			n.Errorf("send --ref %s: exit %d: %s", ref, code, out)
		}
	}
	placetest.Git(n.T, n.Repo, "update-ref", "-d", "refs/heads/"+main) // git itself warns of it
	out, _ := n.Cli(n, "--token", n.Asker, "send", "coder", "Go on", "--repo", "app", "--ref", "mian")
	if !strings.Contains(out, "app has no branch and no tag mian. There is main") {
		n.Errorf("a typing error: %s", out)
	}
	h := knock(n, "gone", []byte(`{"x":1}`), map[string]string{"X-Gitlab-Token": "a token for GitLab alone", "X-Gitlab-Event": "Push Hook"})
	if h.answer["code"] != orchestrator.CodeBadRef {
		n.Errorf("the webhook is told %+v", h)
	}
}

// readsATag: an agent reads a tag; a change made on one is refused and says so.
func readsATag(n *placetest.Node) {
	n.Helper()
	var sent wire.Submitted
	status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "reader", Text: "List", Repository: "app", Ref: "v1"}, &sent)
	if n.Must(err); status != http.StatusAccepted {
		n.Fatalf("a tag is refused: %d", status)
	}
	n.Until("the answer", func() bool { return n.Root(sent.ID).State == orchestrator.Completed })
	if page := n.Page(n.Browser("ann"), "/delegations/"+sent.ID); !strings.Contains(page, "tag v1 (read only)") {
		n.Error("the page does not say that it is about a tag")
	}
	status, err = n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "coder", Text: "Write", Repository: "app", Ref: "v1"}, &sent)
	if n.Must(err); status != http.StatusAccepted {
		n.Fatalf("a tag is refused: %d", status)
	}
	n.Until("the end", func() bool { return n.Root(sent.ID).State.Ended() })
	if d := n.Root(sent.ID); d.State != orchestrator.Failed || d.Error.Code != orchestrator.CodeBadRef || placetest.Count(n.Events(sent.ID), event.PatchRejected, "") != 1 || len(n.Requests(sent.ID)) != 0 {
		n.Errorf("a change on a tag: %s %+v", d.State, d.Error)
	}
}

// handsOnFromATag: what a hand-over on a tag is compared with has a name at every door.
func handsOnFromATag(n *placetest.Node) {
	n.Helper()
	var sent wire.Submitted
	status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "lead", Text: "Draft", Repository: "app", Ref: "v1"}, &sent)
	if n.Must(err); status != http.StatusAccepted {
		n.Fatalf("a tag is refused: %d", status)
	}
	r := n.Asked(sent.ID)
	var told wire.Request
	if status, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, n.Approver, nil, &told); err != nil || status != http.StatusOK || told.Target != "the tag v1" || told.Question.Tag != "v1" {
		n.Errorf("over the API: %d, %v: target %q of %+v", status, err, told.Target, told.Question)
	}
	if out, code := n.Cli(n, "review", r.ID); code != 0 || !strings.Contains(out, "as they differ from the tag v1:") || !strings.Contains(out, "+draft") {
		n.Errorf("review: exit %d: %s", code, out)
	}
	if page := n.Page(n.Browser("bob"), "/approvals/"+r.ID); !strings.Contains(page, "the tag v1") {
		n.Error("the page does not name the tag")
	}
	if status, err := n.Decide(r); err != nil || status != http.StatusOK {
		n.Fatalf("the yes was answered with %d, %v", status, err)
	}
	n.Until("the end", func() bool { return n.Root(sent.ID).State == orchestrator.Completed })
	if d := n.Root(sent.ID); strings.TrimSpace(d.Result.Text) != "draft" {
		n.Errorf("helper read %q", d.Result.Text)
	}
}

// keepsWhatWasDropped: a yes for a change on a commit that main has no more.
func keepsWhatWasDropped(n *placetest.Node) {
	n.Helper()
	kept := placetest.Git(n.T, n.Repo, "rev-parse", "main")
	n.Must(os.WriteFile(filepath.Join(n.Repo, "leak.txt"), []byte("secret\n"), 0o600))
	placetest.Git(n.T, n.Repo, "add", "-A")
	placetest.Git(n.T, n.Repo, "commit", "-q", "-m", "leak")
	dropped := placetest.Git(n.T, n.Repo, "rev-parse", "main")
	task := n.Send("coder", "app", "a good thing")
	r := n.Asked(task)
	placetest.Git(n.T, n.Repo, "reset", "-q", "--hard", kept)
	if page := n.Page(n.Browser("bob"), "/approvals/"+r.ID); !strings.Contains(page, "main was rewound or rewritten since") || !strings.Contains(page, "made on main at") || !strings.Contains(page, "committed") {
		n.Error("the page does not say what the change was made on, and that main has it no more")
	}
	if out, code := n.Cli(n, "review", r.ID); code != 0 || !strings.Contains(out, "made on main at "+dropped[:7]+", committed ") {
		n.Errorf("review: exit %d: %s", code, out)
	}
	status, err := n.Decide(r)
	if n.Must(err); status != http.StatusOK {
		n.Fatalf("the yes was answered with %d", status)
	}
	n.Until("the second question", func() bool {
		again := n.Requests(task, approval.Pending)
		return len(again) == 1 && again[0].Revision.N == 2
	})
	if b := n.Asked(task).Revision.Base; b.Commit != kept || b.Branch != "main" {
		n.Errorf("asked again on %+v", b)
	}
	n.Through(task)
	if in := placetest.Git(n.T, n.Repo, "branch", "--contains", dropped); in != "" {
		n.Errorf("%s has the dropped commit again", in)
	}
	if names := placetest.Git(n.T, n.Repo, "diff", "--name-only", kept, "main"); names != "note-"+task+".txt" {
		n.Errorf("landed %q", names)
	}
}
