package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/web/wire"
)

// optInTeam hands on by a model, by a program and along a plan whose worker would hand on, too.
const optInTeam = `
engine: {workers: 4, handoffs: opt_in}
providers:
  local: {base_url: "BASE"}
agents:
  boss: {kind: llm, model: local/one}
  script: {kind: command, command: [sh, -c, 'gatehouse delegate helper "$(cat)" 2>&1 || echo "went on alone"']}
  plan: {kind: workflow, steps: [{id: a, agent: script}]}
  helper: {kind: command, command: [sh, -c, "echo helped"]}
  broken: {kind: command, command: [sh, -c, "echo it broke >&2; exit 3"]}
triggers:
  - {name: ci-failed, kind: webhook, source: github, secret: "It's a Secret to Everybody", agent: script, task: "work", owner: ann, handoffs: true}
`

// H29: both modes are there. Where hand-overs are opt-in, agents work independently unless
// the task enables them; a plan goes on. In a task that has them, a model whose hand-over
// fails falls back to working by itself.
func TestATaskWorksIndependentlyUntilHandoversAreEnabled(t *testing.T) {
	t.Parallel()
	fake := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		switch {
		case !slices.Contains(names(a), "handoff_to_agent"):
			return modeltest.Say("alone from the start")
		case a.Turn == 1:
			return modeltest.Use("handoff_to_agent", map[string]any{"agent_name": "broken", "task": "do it"})
		}
		return modeltest.Say("by myself: " + a.Result("handoff_to_agent"))
	})
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), strings.ReplaceAll(optInTeam, "BASE", fake.OpenAI()))
	n := p.Start(p.Config, "")
	send := func(args ...string) orchestrator.Delegation {
		t.Helper()
		out, code := p.Cli(n, append([]string{"--json", "--token", n.Asker, "send"}, args...)...)
		var sent wire.Submitted
		if err := json.Unmarshal([]byte(out), &sent); err != nil || code != 0 {
			t.Fatalf("send %v: exit %d, %s", args, code, out)
		}
		return n.Through(sent.ID)
	}
	for _, c := range []struct {
		args []string
		says []string
		hops int
	}{
		{[]string{"boss", "work"}, []string{"alone from the start"}, 0},
		{[]string{"script", "work"}, []string{"max_handoffs: Maximum handoffs reached: the task works in independent mode", "went on alone"}, 0},
		{[]string{"plan", "work"}, []string{"independent mode", "went on alone"}, 1},
		{[]string{"boss", "work", "--enable-handoffs"}, []string{"by myself: ", "exit: ", "it broke", "The hand-over failed, so the work is yours again"}, 1},
		{[]string{"plan", "work", "--enable-handoffs"}, []string{"helped"}, 2},
	} {
		root := send(c.args...)
		if root.State != orchestrator.Completed || root.Result == nil {
			t.Errorf("%v is %s: %v", c.args, root.State, root.Error)
			continue
		}
		for _, words := range c.says {
			if !strings.Contains(root.Result.Text, words) {
				t.Errorf("%v answered %q, which lacks %q", c.args, root.Result.Text, words)
			}
		}
		if got := len(tree(p, root.TaskID)) - 1; got != c.hops {
			t.Errorf("%v made %d hand-overs; want %d", c.args, got, c.hops)
		}
	}
	if page := n.Page(n.Browser("ann"), "/"); strings.Count(page, "send it again with hand-overs enabled") != 2 ||
		strings.Count(page, "see why the hand-over before failed") != 0 {
		t.Errorf("the overview tells another step after a refusal:\n%s", page)
	}
	status, answer, err := deliver(n, "d1", []byte(`{"action":"completed"}`))
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("the delivery: %d, %v", status, err)
	}
	if root := n.Through(answer["id"]); root.Result == nil || strings.TrimSpace(root.Result.Text) != "helped" {
		t.Errorf("the trigger's task is %s: %+v", root.State, root.Result)
	}
}
