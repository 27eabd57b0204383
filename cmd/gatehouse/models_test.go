package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"
)

// modelTeam is the example of the sources with models: kik plans, coder changes the
// files, reviewer reads what is not committed yet (K14, K15). The two providers speak
// different formats.
const modelTeam = `
engine: {workers: 4, lease: 10m}
repositories:
  app: {path: "REPO", branch: main, checks: ["test -f hello.txt"]}
providers:
  anthropic: {api_keys: [key-one, key-two], base_url: "ANTHROPIC", prices: {small: {input: 1, output: 5}}}
  local: {base_url: "OPENAI"}
agents:
  kik: {kind: llm, role: admin, model: PLANNER/small, prompt: "You plan and delegate.", capabilities: [planning], tools: {allow: [group:delegation, group:context]}}
  coder: {kind: llm, role: developer, model: CODER/small, prompt: "You write code.", repository: app}
  reviewer: {kind: llm, model: local/small, prompt: "You review.", repository: app, analysis_only: true, approval: auto, capabilities: [review]}
`

// newModels makes the place with a fake service of models that follows the script.
func newModels(t *testing.T, database, planner, coder string, script modeltest.Script) (*placetest.Place, *modeltest.Server) {
	t.Helper()
	s := modeltest.Start(script)
	t.Cleanup(s.Close)
	text := strings.NewReplacer("ANTHROPIC", s.Anthropic(), "OPENAI", s.OpenAI(), "PLANNER", planner, "CODER", coder).Replace(modelTeam)
	return placetest.New(t, database, text), s
}

// teamwork is what each model of the team says, by its turn.
func teamwork(a modeltest.Ask) modeltest.Answer {
	use := modeltest.Use
	plays := map[string][]modeltest.Answer{
		"kik": {use("list_agents", map[string]any{}), use("delegate_to_agent", map[string]any{"agent": "coder", "task": "Add hello.txt", "context": map[string]string{"word": "hello"}}),
			modeltest.Say("kik: " + a.Result("delegate_to_agent"))},
		"coder": {
			{Text: "I write it", Calls: []modeltest.Call{modeltest.ToolCall("write_file", map[string]any{"path": "hello.txt", "content": "hello\n"}),
				modeltest.ToolCall("shared_context", map[string]any{"action": "set", "namespace": "codebase", "key": "hello", "value": "is in hello.txt"})}},
			{Calls: []modeltest.Call{modeltest.ToolCall("run_checks", map[string]any{}), modeltest.ToolCall("delegate_to_agent", map[string]any{"capability": "review", "task": "Look at it"}),
				modeltest.ToolCall("read_file", map[string]any{"path": "hello.txt"})}},
			modeltest.Say("coder: " + a.Result("delegate_to_agent") + "; " + a.Result("run_checks")),
		},
		"reviewer": {use("read_file", map[string]any{"path": "hello.txt"}), use("shared_context", map[string]any{"action": "get", "namespace": "codebase", "key": "hello"}),
			modeltest.Say("reviewer read " + a.Result("read_file") + ", " + a.Result("shared_context"))},
	}
	for name, turns := range plays {
		if strings.Contains(a.System, "You are the agent "+name) && a.Turn <= len(turns) {
			return turns[a.Turn-1]
		}
	}
	return modeltest.Say("I am nobody here.")
}

// worked checks that the team's task ended as it must, whatever happened on the way.
func worked(p *placetest.Place, n *placetest.Node, taskID string) {
	p.Helper()
	root := n.Through(taskID)
	p.LandedOnce(taskID)
	if root.Result == nil {
		p.Fatalf("the task is %s: %v", root.State, root.Error)
	}
	for _, part := range []string{"kik: coder: reviewer read hello", "is in hello.txt", "1 of 1 checks passed"} {
		if !strings.Contains(root.Result.Text, part) {
			p.Errorf("the answer %q lacks %q", root.Result.Text, part)
		}
	}
	if text := placetest.Git(p.T, p.Repo, "show", "main:hello.txt"); text != "hello" {
		p.Errorf("main has hello.txt with %q", text)
	}
	if got := placetest.Count(p.Events(taskID), event.Delegated, ""); got != 2 {
		p.Errorf("%d hand-overs, want 2", got)
	}
	p.NothingLeft(p.Data)
}

// TestATeamOfModels: kik → coder → reviewer end to end, with models of both formats: the
// reviewer sees what is not committed, one change is approved and lands, and the answers
// come back up (K14, K15, O1, P6, H8).
func TestATeamOfModels(t *testing.T) {
	t.Parallel()
	for _, who := range [][2]string{{"anthropic", "anthropic"}, {"local", "local"}, {"anthropic", "local"}} {
		t.Run(strings.Join(who[:], " and "), func(t *testing.T) {
			t.Parallel()
			p, models := newModels(t, "sqlite:"+t.TempDir()+"/gatehouse.db", who[0], who[1], teamwork)
			n := p.Start(p.Config, "")
			task := n.Send("kik", "app", "once")
			worked(p, n, task)
			if r := models.Repeats(); r != 0 {
				t.Errorf("%d calls were paid twice", r)
			}
			if asks := len(models.Asks()); asks != 9 {
				t.Errorf("asked %d times; want 9", asks)
			}
			if u := p.Root(task).Usage; u.InputTokens == 0 || u.OutputTokens == 0 {
				t.Errorf("used %+v", u)
			}
		})
	}
}

// TestAModelThatTalksNonsense: duplicate ids, broken JSON, unknown tools, a delegation to
// itself under another spelling and a loop each end as they must, with their events.
func TestAModelThatTalksNonsense(t *testing.T) {
	t.Parallel()
	p, _ := newModels(t, "sqlite:"+t.TempDir()+"/gatehouse.db", "anthropic", "local", func(a modeltest.Ask) modeltest.Answer {
		switch {
		case strings.Contains(a.Conversation, "loop"):
			return modeltest.Use("list_agents", map[string]any{})
		case a.Turn == 1:
			return modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "shared_context", Text: `{"action":`}, {ID: "x", Name: "nowhere", Input: []byte(`{}`)},
				{ID: "x", Name: "delegate_to_agent", Input: []byte(`{"agent":"KIK","task":"do it"}`)}}}
		}
		var texts []string
		for _, b := range a.Last().Blocks {
			if b.Type == agent.AnswerBlock {
				texts = append(texts, b.Text)
			}
		}
		return modeltest.Say(strings.Join(texts, " | "))
	})
	n := p.Start(p.Config, "")
	root := n.Through(n.Send("kik", "", "nonsense"))
	if root.Result == nil {
		t.Fatalf("%s: %v", root.State, root.Error)
	}
	for _, part := range []string{"no JSON object", `no tool "nowhere"`, "self: "} {
		if !strings.Contains(root.Result.Text, part) {
			t.Errorf("%q lacks %q", root.Result.Text, part)
		}
	}
	task := n.Send("kik", "", "loop")
	if root = n.Through(task); root.Error == nil || root.Error.Code != agent.CodeLoop {
		t.Errorf("the loop ended %s: %v", root.State, root.Error)
	}
	if got := placetest.Count(p.Events(task), event.ToolCompleted, "kik"); got != 30 {
		t.Errorf("%d calls are on record; want 30", got)
	}
	var d wire.Delegation
	if status, err := n.Call(http.MethodGet, "/api/v1/delegations/"+root.ID, n.Asker, nil, &d); err != nil || status != http.StatusOK || d.Error == nil || d.Error.Code != "loop" {
		t.Errorf("the API shows %d, %v, %+v", status, err, d.Error)
	}
	if slices.ContainsFunc(p.Events(task), func(e event.Event) bool { return strings.Contains(string(e.Data), "key-one") }) {
		t.Error("a provider's key is in the history")
	}
}
