package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

const forkedChief = `
engine: {workers: 2, lease: 10m}
repositories:
  app: {path: "REPO", branch: main}
  other: {path: "DIR/other.git", branch: main}
providers:
  local: {base_url: "BASE"}
agents:
  chief: {kind: llm, model: local/one, repository: app}
  hand: {kind: command, repository: other, env: {PLACE: MARK}, command: [sh, -c, "cat; echo x > x.txt"]}
`

// TestAChildOfAForkKeepsItsPeopleOut: a child works in a repository of its own, so nothing
// of its tree comes from its caller. Who asked for the task that was forked asked for its
// work all the same.
func TestAChildOfAForkKeepsItsPeopleOut(t *testing.T) {
	t.Parallel()
	fake := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		switch a.Turn {
		case 1:
			return modeltest.Use("list_agents", map[string]any{})
		case 2:
			return modeltest.Use("delegate_to_agent", map[string]any{"agent": "hand", "task": "write x"})
		}
		return modeltest.Say("Done.")
	})
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.ReplaceAll(forkedChief, "BASE", fake.OpenAI()))
	placetest.Git(t, "", "clone", "-q", "--bare", p.Repo, filepath.Join(p.Dir, "other.git"))
	first, forker := p.Person("first", people.Operator, people.Approver), p.Person("forker", people.Operator, people.Approver)
	n := p.Start(p.Config, "")
	var sent, forked wire.Submitted
	if code, err := n.Call(http.MethodPost, "/api/v1/tasks", first, wire.Submission{Agent: "chief", Text: "Have x written"}, &sent); err != nil || code != http.StatusAccepted {
		t.Fatal(code, err)
	}
	r := p.Asked(sent.ID)
	barred(n, "first", first, r, "You asked for this task")
	if code, why := casts(n, n.Approver, r, map[string]any{"verdict": "reject", "revision": 1, "comment": "Not now."}); code != http.StatusOK {
		t.Fatal(code, why)
	}
	p.Until("the end of the first task", func() bool { return p.Root(sent.ID).State.Ended() })
	if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+sent.ID+"/fork", forker, map[string]int{"turn": 1}, &forked); err != nil || code != http.StatusAccepted {
		t.Fatal(code, err)
	}
	r = p.Asked(forked.ID)
	if r.Agent != "hand" || r.Repository != "other" {
		t.Fatalf("%s asks for %s", r.Agent, r.Repository)
	}
	barred(n, "forker", forker, r, "You asked for this task")
	barred(n, "first", first, r, "asked for the task that it goes on from")
	if code, why := casts(n, n.Approver, r, map[string]any{"verdict": "approve", "revision": 1, "ticked": approval.Ticks(r)}); code != http.StatusOK {
		t.Errorf("bob's yes: %d %+v", code, why)
	}
	p.Until("the end", func() bool { return p.Root(forked.ID).State.Ended() })
	n.Stop()
}
