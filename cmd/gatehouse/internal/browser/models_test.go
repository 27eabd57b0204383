package browser

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
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
		return placetest.KikWork(a)
	})
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), placetest.KikTeamOf("anthropic", fake.Anthropic())+
		"  broken: {kind: command, command: [sh, -c, 'exit 3']}\n  deployer: {kind: command, command: [\"true\"], ask_first: true}\n"+
		"  plan: {kind: workflow, steps: [{id: ship, agent: deployer, task: Ship it}]}\n  slow: {kind: command, command: [sleep, '600']}\n")
	n := p.Start(p.Config, "")
	browser := browsertest.New(t)
	ann, bob := browser.Page(), browser.Page()
	for name, page := range map[string]*browsertest.Page{"ann": ann, "bob": bob} {
		u, err := p.Store.UserByName(t.Context(), name)
		p.Must(err)
		code, err := placetest.SignedIn(t.Context(), p.Store, u)
		p.Must(err)
		page.Open(n.URL + "/login/link?code=" + code)
		page.WaitText("Needs you")
	}
	for _, name := range []string{"context", "insights", "waits"} {
		gallery(t, ann, "models-empty-"+name, n.URL+"/"+name)
	}
	task := n.Send("KIK", "", "the greeting")
	n.Through(task)
	for i := range 3 {
		n.Through(n.Send("KIK", "", fmt.Sprint("the broken thing ", i)))
	}
	n.Send("slow", "", "the waiting")
	question := n.Asked(n.Send("plan", "", "the shipping"))
	if !question.IsHandover() || question.State != approval.Pending {
		t.Fatalf("the hand-over is asked as %+v", question)
	}
	root := p.Root(task)
	page := n.URL + "/delegations/" + root.ID
	for name, address := range map[string]string{
		"tree": page, "conversation": page + "?tab=conversation", "flow": page + "?tab=flow", "figures": page + "?tab=figures", "events": page + "?tab=events",
		"context": n.URL + "/context", "context-ns": n.URL + "/context?ns=codebase", "insights": n.URL + "/insights", "breaker": n.URL + "/agents/broken", "waits": n.URL + "/waits",
		"agents": n.URL + "/agents", "check": n.URL + "/agents?from=VajbCoder&to=broken",
	} {
		gallery(t, ann, "models-"+name, address)
	}
	gallery(t, bob, "models-question", n.URL+"/approvals/"+question.ID)
	gallery(t, bob, "models-approvals", n.URL+"/approvals")
}
