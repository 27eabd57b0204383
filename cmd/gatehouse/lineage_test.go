package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// askedTeam is a model that writes a file.
const askedTeam = `
engine: {workers: 2, lease: 10m}
repositories:
  app: {path: "REPO", branch: main}
providers:
  local: {base_url: "BASE"}
agents:
  coder: {kind: llm, model: local/one, repository: app}
`

// writesAgain writes the same file each time it is asked for something.
func writesAgain(a modeltest.Ask) modeltest.Answer {
	if a.Turn%2 == 1 {
		return modeltest.Use("write_file", map[string]any{"path": "code.txt", "content": fmt.Sprintf("turn %d\n", a.Turn)})
	}
	return modeltest.Say("I wrote it.")
}

// barred casts a yes that four eyes must refuse, at the API and on the page.
func barred(n *placetest.Node, name, token string, r approval.Request, says string) {
	n.Helper()
	yes := map[string]any{"verdict": "approve", "revision": r.Revision.N, "ticked": approval.Ticks(r)}
	if code, p := casts(n, token, r, yes); code != http.StatusForbidden || p.Code != orchestrator.CodeFourEyes || !strings.Contains(p.Detail, says) {
		n.Errorf("%s's yes to revision %d: %d %+v; want 403 four_eyes with %q", name, r.Revision.N, code, p, says)
	}
	if code, body := n.Say(n.Browser(name), "/approvals/", r, "approve", ""); code != http.StatusForbidden || !strings.Contains(body, says) {
		n.Errorf("%s's yes on the page: %d", name, code)
	}
}

// TestAForkAndAnEditKeepTheirPeopleOut is row 5, its second and third part: who asked
// first does not become an approver by somebody else's fork, and who edited revision 2
// does not approve what the agent makes of it after "request changes".
func TestAForkAndAnEditKeepTheirPeopleOut(t *testing.T) {
	t.Parallel()
	fake := modeltest.Start(writesAgain)
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.ReplaceAll(askedTeam, "BASE", fake.OpenAI()))
	first := p.Person("first", people.Operator, people.Approver)
	forker := p.Person("forker", people.Operator, people.Approver)
	cleo := p.Person("cleo", people.Approver)
	n := p.Start(p.Config, "")

	var sent, forked wire.Submitted
	status, err := n.Call(http.MethodPost, "/api/v1/tasks", first, wire.Submission{Agent: "coder", Text: "Write it", Repository: "app"}, &sent)
	if n.Must(err); status != http.StatusAccepted {
		t.Fatalf("the task: %d", status)
	}
	barred(n, "first", first, p.Asked(sent.ID), "You asked for this task")
	status, err = n.Call(http.MethodPost, "/api/v1/delegations/"+sent.ID+"/fork", forker, map[string]int{"turn": 1}, &forked)
	if n.Must(err); status != http.StatusAccepted {
		t.Fatalf("the fork: %d", status)
	}
	r := p.Asked(forked.ID)
	if r.Requester != "forker" {
		t.Errorf("the fork is %s's", r.Requester)
	}
	barred(n, "forker", forker, r, "You asked for this task")
	barred(n, "first", first, r, "asked for the task that it goes on from")

	if code, p := casts(n, n.Approver, r, map[string]any{"verdict": "edit", "revision": 1, "edits": []map[string]any{{"path": "bob.txt", "text": "bob's\n"}}}); code != http.StatusOK {
		t.Fatalf("bob's edit: %d %+v", code, p)
	}
	r = p.Revised(forked.ID, 2)
	barred(n, "bob", n.Approver, r, "You edited this revision")
	if code, p := casts(n, cleo, r, map[string]any{"verdict": "request_changes", "revision": 2, "comment": "Once more."}); code != http.StatusOK {
		t.Fatalf("request changes: %d %+v", code, p)
	}
	r = p.Revised(forked.ID, 3)
	barred(n, "bob", n.Approver, r, "edited an earlier revision")
	barred(n, "first", first, r, "asked for the task that it goes on from")
	keepsEditorsOutOfARetry(n, cleo)
	if code, p := casts(n, cleo, r, map[string]any{"verdict": "approve", "revision": 3, "ticked": approval.Ticks(r)}); code != http.StatusOK {
		t.Fatalf("cleo's yes: %d %+v", code, p)
	}
	p.Until("the landing", func() bool { return p.Root(forked.ID).State == orchestrator.Completed })
	n.Stop()
}

// keepsEditorsOutOfARetry: what an agent makes when it is run again may have the text that
// a person wrote into its first try, so that person does not approve it either.
func keepsEditorsOutOfARetry(n *placetest.Node, cleo string) {
	n.Helper()
	task := n.Send("coder", "app", "write it and be told no")
	r := n.Asked(task)
	if code, p := casts(n, n.Approver, r, map[string]any{"verdict": "edit", "revision": 1, "edits": []map[string]any{{"path": "code.txt", "text": "bob's turn\n"}}}); code != http.StatusOK {
		n.Fatalf("bob's edit: %d %+v", code, p)
	}
	if code, p := casts(n, cleo, n.Revised(task, 2), map[string]any{"verdict": "reject", "revision": 2, "comment": "Neither."}); code != http.StatusOK {
		n.Fatalf("cleo's no: %d %+v", code, p)
	}
	n.Until("the end of the first try", func() bool { return n.Root(task).State == orchestrator.Rejected })
	if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+task+"/retry", n.Asker, nil, nil); err != nil || code >= 300 {
		n.Fatalf("the retry: %d, %v", code, err)
	}
	again := n.Asked(task)
	if again.ID == r.ID || again.Revision.N != 1 {
		n.Fatalf("asked again: %s, revision %d", again.ID, again.Revision.N)
	}
	barred(n, "bob", n.Approver, again, "edited an earlier revision")
	if code, p := casts(n, cleo, again, map[string]any{"verdict": "reject", "revision": 1, "comment": "Nor this."}); code != http.StatusOK {
		n.Fatalf("cleo's second no: %d %+v", code, p)
	}
}
