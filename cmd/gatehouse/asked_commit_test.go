package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// releaseTeam is deployer, which is started as ./deploy.sh of the branch rel and asks first: a
// trigger starts it, and so does clerk, who shares no files with it.
const releaseTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  clerk: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null; gatehouse delegate deployer "deploy release 9"']}
  deployer: {kind: command, repository: app, sandbox: off, ask_first: true, command: [./deploy.sh]}
triggers:
  - {name: ci-failed, kind: webhook, source: github, secret: "It's a Secret to Everybody", agent: deployer, repository: app, ref: rel, task: "deploy release 8", owner: mia}
`

// script commits what ./deploy.sh says on a branch, which is forced there.
func script(p *placetest.Place, branch, says string) (commit string) {
	p.Helper()
	placetest.Git(p.T, p.Repo, "checkout", "-q", "-B", branch, "main")
	p.Must(os.WriteFile(p.Repo+"/deploy.sh", []byte("#!/bin/sh\necho "+says+"\n"), 0o755))
	placetest.Git(p.T, p.Repo, "add", "-A")
	placetest.Git(p.T, p.Repo, "commit", "-q", "-m", says)
	commit = strings.TrimSpace(placetest.Git(p.T, p.Repo, "rev-parse", "HEAD"))
	placetest.Git(p.T, p.Repo, "checkout", "-q", "--detach", "main")
	return commit
}

// The task of a trigger, and a child that shares no files with its caller, are asked about with
// the commit that they start from. That is what runs, wherever the branch goes before the yes.
func TestTheYesToATriggersWorkIsToItsCommit(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), releaseTeam)
	p.Person("mia", people.Operator, people.Approver)
	first := script(p, "rel", "RELEASE")
	p.Person("cleo", people.Approver)
	n := p.Start(p.Config, "")
	cleo := n.Browser("cleo")

	answered := func(r approval.Request) string {
		t.Helper()
		if code, body := n.Say(cleo, "/approvals/", r, "approve", ""); code != http.StatusOK && code != http.StatusSeeOther {
			t.Fatalf("the yes: %d\n%s", code, body)
		}
		p.Until("the end", func() bool { return p.Root(r.TaskID).State.Ended() })
		d, err := p.Store.Delegation(t.Context(), r.DelegationID)
		p.Must(err)
		if d.State != orchestrator.Completed {
			t.Fatalf("it ended %s: %+v", d.State, d.Error)
		}
		return strings.TrimSpace(d.Result.Text)
	}
	shown := func(r approval.Request, branch, commit string) {
		t.Helper()
		var a wire.Request
		if code, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, p.Approver, nil, &a); err != nil || code != http.StatusOK {
			t.Fatalf("the request: %d %v", code, err)
		}
		if a.Target != branch || a.Base != commit || a.Question.Branch != branch || a.Question.Base != commit || a.Question.Repository != "app" || a.Tree == "" || len(a.Files) != 0 {
			text, _ := json.Marshal(a)
			t.Errorf("the API says %s", text)
		}
		at := "starts from " + branch + " of app at " + commit[:12]
		if page := n.Page(cleo, "/approvals/"+r.ID); !strings.Contains(page, at) || !strings.Contains(page, `name="verdict" value="approve"`) {
			t.Errorf("the page does not say %q", at)
		}
		if out, code := p.Cli(n, "review", r.ID); code != 0 || !strings.Contains(out, "starts from "+branch+" of app at "+commit[:7]) {
			t.Errorf("review: exit %d\n%s", code, out)
		}
		if chat := n.Page(cleo, "/chat"); !strings.Contains(chat, "Starts from: "+branch+" of app at "+commit[:12]) {
			t.Error("the card in the chat does not say what it starts from")
		}
		if digest, err := r.Handover.Digest(r.TaskID); err != nil || digest != r.Revision.Digest {
			t.Errorf("the digest is %s, %v, of the question %s", r.Revision.Digest, err, digest)
		}
	}

	body, err := os.ReadFile("../../orchestrator/trigger/testdata/github_workflow_run.json")
	p.Must(err)
	status, answer, err := deliver(n, "d1", body)
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("the delivery: %d %v %v", status, answer, err)
	}
	r := p.Asked(answer["id"])
	shown(r, "rel", first)
	second := script(p, "rel", "AFTER-THE-QUESTION")
	if got := answered(r); got != "RELEASE" {
		t.Errorf("the yes to %.12s ran %q", first, got)
	}

	placetest.Git(t, p.Repo, "branch", "-f", "main", second)
	placetest.Git(t, p.Repo, "checkout", "-q", "--detach", "main")
	r = p.Asked(n.Send("clerk", "", "release"))
	shown(r, "main", second)
	script(p, "later", "LATER")
	placetest.Git(t, p.Repo, "branch", "-f", "main", "later")
	if got := answered(r); got != "AFTER-THE-QUESTION" {
		t.Errorf("the yes to %.12s ran %q", second, got)
	}
	n.Stop()
}

// A trigger's task that is run again is asked about again, with where the branch is by then.
func TestRetryOfATriggersTaskAsksAboutItsCommitAnew(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), releaseTeam)
	p.Person("mia", people.Operator, people.Approver)
	script(p, "rel", "RELEASE")
	n := p.Start(p.Config, "")
	body, err := os.ReadFile("../../orchestrator/trigger/testdata/github_workflow_run.json")
	p.Must(err)
	_, answer, err := deliver(n, "d1", body)
	p.Must(err)
	r := p.Asked(answer["id"])
	if code, said := casts(n, p.Approver, r, map[string]any{"verdict": "reject", "revision": 1, "comment": "Not today."}); code != http.StatusOK {
		t.Fatalf("the no: %d %+v", code, said)
	}
	second := script(p, "rel", "ANEW")
	if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+r.TaskID+"/retry", p.Asker, nil, nil); err != nil || code >= http.StatusBadRequest {
		t.Fatalf("retry: %d %v", code, err)
	}
	again := p.Asked(r.TaskID)
	if again.ID == r.ID || again.Handover.BaseCommit != second || again.Handover.Branch != "rel" {
		t.Fatalf("asked %s about %+v", again.ID, again.Handover)
	}
	script(p, "rel", "AFTER-THE-QUESTION")
	if code, err := n.Decide(again); err != nil || code != http.StatusOK {
		t.Fatalf("bob's yes: %d %v", code, err)
	}
	p.Until("the end", func() bool { return p.Root(r.TaskID).State.Ended() })
	if d := p.Root(r.TaskID); d.Result == nil || strings.TrimSpace(d.Result.Text) != "ANEW" {
		t.Errorf("it ran %+v, %+v", d.Result, d.Error)
	}
	n.Stop()
}
