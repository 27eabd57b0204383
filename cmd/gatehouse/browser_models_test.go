package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/web/browsertest"
)

// TestThePagesOfModels: a team of models works, is refused, asks a person and fails, and
// every page that shows it is looked at, on a desktop and on a phone.
func TestThePagesOfModels(t *testing.T) {
	t.Parallel()
	fake := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		if strings.Contains(a.Conversation, "broken") && a.Turn == 1 {
			return modeltest.Use("delegate_to_agent", map[string]any{"agent": "broken", "task": "Break"})
		}
		if strings.Contains(a.Conversation, "broken") {
			return modeltest.Say("It broke: " + a.Result("delegate_to_agent"))
		}
		return kikWork(a)
	})
	t.Cleanup(fake.Close)
	p := newPlace(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), kikTeamOf("anthropic", fake.Anthropic())+
		"  broken: {kind: command, command: [sh, -c, 'exit 3']}\n  deployer: {kind: command, command: [\"true\"], ask_first: true}\n"+
		"  plan: {kind: workflow, steps: [{id: ship, agent: deployer, task: Ship it}]}\n  slow: {kind: command, command: [sleep, '600']}\n")
	n := p.start(p.config, "")
	browser := browsertest.New(t)
	ann, bob := browser.Page(), browser.Page()
	for name, page := range map[string]*browsertest.Page{"ann": ann, "bob": bob} {
		u, err := p.store.UserByName(t.Context(), name)
		p.must(err)
		code, err := signinCode(t.Context(), p.store, u)
		p.must(err)
		page.Open(n.url + "/login/link?code=" + code)
		page.WaitText("Needs you")
	}
	for _, name := range []string{"context", "insights", "waits"} {
		gallery(t, ann, "models-empty-"+name, n.url+"/"+name)
	}
	task := n.send("KIK", "", "the greeting")
	n.through(task)
	for i := range 3 {
		n.through(n.send("KIK", "", fmt.Sprint("the broken thing ", i)))
	}
	n.send("slow", "", "the waiting")
	question := n.asked(n.send("plan", "", "the shipping"))
	if !question.IsHandover() || question.State != approval.Pending {
		t.Fatalf("the hand-over is asked as %+v", question)
	}
	root := p.root(task)
	page := n.url + "/delegations/" + root.ID
	for name, address := range map[string]string{
		"tree": page, "conversation": page + "?tab=conversation", "flow": page + "?tab=flow", "figures": page + "?tab=figures", "events": page + "?tab=events",
		"context": n.url + "/context", "context-ns": n.url + "/context?ns=codebase", "insights": n.url + "/insights", "breaker": n.url + "/agents/broken", "waits": n.url + "/waits",
		"agents": n.url + "/agents", "check": n.url + "/agents?from=VajbCoder&to=broken",
	} {
		gallery(t, ann, "models-"+name, address)
	}
	gallery(t, bob, "models-question", n.url+"/approvals/"+question.ID)
	gallery(t, bob, "models-approvals", n.url+"/approvals")
}
