package main

import (
	"net/http"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/store/storetest"
	"gatehouse/web/wire"
)

// operatorTeam is a model with the tools of a server, of which some destroy.
const operatorTeam = `
engine: {workers: 2, lease: 2s}
providers:
  anthropic: {api_keys: [key-one], base_url: "ANTHROPIC"}
agents:
  operator: {kind: llm, model: anthropic/small, prompt: "You operate.", mcp: [{name: ops, url: "OPS"}], env: {PLACE: MARK}}
approval:
  actions: [{name: ops, when: "server == 'ops' && hints.destructive", need: 1}]
`

// A model's call of a tool that destroys is asked and parked: no process and no slot is held. Its
// node goes away; the yes on the other one lets the call be made there, once. What is allowed
// for the rest of the task passes there, and is asked again at once where a node that does not
// work on it has revoked the grant.
func TestACallOfAModelIsAllowedOnAnotherNode(t *testing.T) {
	t.Parallel()
	revoked := make(chan struct{})
	models := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		if a.Turn == 3 {
			<-revoked
		}
		if a.Turn <= 3 {
			return modeltest.Answer{Calls: []modeltest.Call{modeltest.ToolCall("mcp_ops_deploy_production", map[string]any{"turn": a.Turn})}}
		}
		return modeltest.Say("It said: " + a.Last().Blocks[0].Text)
	})
	t.Cleanup(models.Close)
	ops := &operations{}
	made := func() int {
		ops.mu.Lock()
		defer ops.mu.Unlock()
		return len(ops.done)
	}
	text := strings.NewReplacer("ANTHROPIC", models.Anthropic(), "OPS", ops.serve(t)).Replace(operatorTeam)
	p := placetest.New(t, storetest.Postgres(t), text)
	other, _ := p.Configure("two", text)
	n := p.Start(p.Config, "")
	id := n.Send("operator", "", "deploy")
	r := p.Asked(id)
	d := p.Root(id)
	if r.Action == nil || r.Action.Tool != "mcp_ops_deploy_production" || r.Action.Server != "ops" || d.State != orchestrator.Waiting || d.Holder != "" || d.Work.ProcessWait || p.Marked() != 0 {
		t.Fatalf("asked %+v while it is %s, held by %q, with %d processes", r.Action, d.State, d.Holder, p.Marked())
	}
	two := p.Start(other, "")
	n.Kill()
	if made() != 0 {
		t.Fatal("it was made without a yes")
	}
	if code, said := casts(two, p.Approver, r, map[string]any{"verdict": "approve", "scope": "task"}); code != http.StatusOK {
		t.Fatalf("the yes: %d %+v", code, said)
	}
	p.Until("two calls", func() bool { return made() == 2 }) // the second one by the grant
	one := p.Start(p.Config, "")
	revoker := one
	if p.Root(id).Holder == name(p, "one") {
		revoker = two
	}
	var given wire.Grants
	if code, err := one.Call(http.MethodGet, "/api/v1/delegations/"+p.Root(id).ID+"/grants", p.Approver, nil, &given); err != nil || code != http.StatusOK || len(given.Items) != 1 || given.Items[0].Uses != 1 {
		t.Fatalf("grants: %d, %v, %+v", code, err, given)
	}
	if code, err := revoker.Call(http.MethodDelete, "/api/v1/grants/"+given.Items[0].ID, p.Asker, nil, nil); err != nil || code != http.StatusOK {
		t.Fatalf("revoked: %d, %v", code, err)
	}
	close(revoked)
	again := p.Asked(id)
	if again.ID == r.ID || made() != 2 {
		t.Errorf("made %d times after the grant was revoked", made())
	}
	if code, said := casts(one, p.Approver, again, map[string]any{"verdict": "reject", "comment": "twice is enough"}); code != http.StatusOK {
		t.Fatalf("the no: %d %+v", code, said)
	}
	p.Until("the end", func() bool { return p.Root(id).State.Ended() })
	if root := p.Root(id); root.State != orchestrator.Completed || !strings.Contains(root.Result.Text, "twice is enough") || made() != 2 {
		t.Errorf("it is %s, %+v, %v, made %d times", root.State, root.Result, root.Error, made())
	}
}
