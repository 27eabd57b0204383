package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// operations is a server of tools: one says that it only reads, one is named safe by the
// settings, and the others change something or say nothing of themselves.
type operations struct {
	mu   sync.Mutex
	done []string
}

func (o *operations) serve(t *testing.T) string {
	t.Helper()
	no := false
	server := mcp.NewServer(&mcp.Implementation{Name: "operations", Version: "1"}, nil)
	for name, hints := range map[string]*mcp.ToolAnnotations{
		"look": {ReadOnlyHint: true}, "count": nil, "note": nil, "tidy": {DestructiveHint: &no, IdempotentHint: true}, "deploy_production": {},
	} {
		server.AddTool(&mcp.Tool{Name: name, Annotations: hints, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.done = append(o.done, name)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "did " + name}}}, nil
		})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// names are the tools that a call of a model was shown.
func names(a modeltest.Ask) []string {
	var all []string
	for _, tool := range a.Tools {
		all = append(all, tool.Name)
	}
	slices.Sort(all)
	return all
}

const analysts = `
engine: {workers: 2}
repositories:
  app: {path: "REPO", branch: main}
providers:
  anthropic: {api_keys: [key-one], base_url: "ANTHROPIC"}
agents:
  analyst: {kind: llm, model: anthropic/small, prompt: "You analyse.", repository: app, analysis_only: true, tools: {deny: [group:delegation]}, mcp: [{name: ops, url: "OPS", safe: [count]}]}
  operator: {kind: llm, model: anthropic/small, prompt: "You operate.", repository: app, tools: {deny: [group:delegation]}, mcp: [{name: ops, url: "OPS"}]}
`

// K45: what an agent that only analyses does passes by itself, so it is given only what
// changes nothing. A call of a server's tool that may change something is asked about: the
// model parks meanwhile, also over a restart, and its answer passes by no rule once people
// allowed one. What would change files is refused in words.
func TestAnAnalysisHasNoToolThatChangesAnything(t *testing.T) {
	t.Parallel()
	var shown sync.Map
	models := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		who := "analyst"
		if strings.Contains(a.System, "You are the agent operator") {
			who = "operator"
		}
		if a.Turn == 1 {
			shown.Store(who, names(a))
			return modeltest.Answer{Calls: []modeltest.Call{modeltest.ToolCall("mcp_ops_deploy_production", map[string]any{}), modeltest.ToolCall("write_file", map[string]any{"path": "x", "content": "x"}),
				modeltest.ToolCall("mcp_ops_tidy", map[string]any{}), modeltest.ToolCall("mcp_ops_count", map[string]any{}), modeltest.ToolCall("mcp_ops_look", map[string]any{})}}
		}
		var said []string
		for _, b := range a.Last().Blocks {
			said = append(said, b.Text)
		}
		return modeltest.Say(strings.Join(said, "\n"))
	})
	t.Cleanup(models.Close)
	ops := &operations{}
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), strings.NewReplacer("ANTHROPIC", models.Anthropic(), "OPS", ops.serve(t)).Replace(analysts))
	n := p.Start(p.Config, "")
	id := n.Send("analyst", "app", "analyse")
	first := p.Asked(id)
	p.Until("both calls are asked about", func() bool { return len(p.Requests(id, approval.Pending)) == 2 })
	if first.Rule.Name != "analysis-only" || first.Action.Server != "ops" || p.Root(id).State != orchestrator.Waiting || p.Root(id).Holder != "" {
		t.Errorf("asked %+v by %q while it is %s", first.Action, first.Rule.Name, p.Root(id).State)
	}
	n.Kill()
	n = p.Start(p.Config, "")
	for _, r := range p.Requests(id, approval.Pending) {
		verdict := map[string]any{"verdict": "approve"}
		if r.Action.Tool == "mcp_ops_tidy" {
			verdict = map[string]any{"verdict": "reject", "comment": "it is tidy"}
		}
		if code, said := casts(n, p.Approver, r, verdict); code != http.StatusOK {
			t.Fatalf("decided on %s: %d %+v", r.Action.Tool, code, said)
		}
	}
	root := answered(p, id)
	got, _ := shown.Load("analyst")
	if want := []string{"ask_person", "finish", "list_files", "mcp_ops_count", "mcp_ops_look", "read_file", "run_checks", "search", "shared_context"}; !slices.Equal(got.([]string), want) {
		t.Errorf("the analyst was given %v; want %v", got, want)
	}
	lines := strings.Split(root.Result.Text, "\n")
	if len(lines) != 5 || lines[3] != "did count" || lines[4] != "did look" {
		t.Fatalf("its calls were answered %q", lines)
	}
	for i, want := range []string{"did deploy_production", "action_refused: The rule analysis-only refuses write_file", "action_refused: bob said no to this call of mcp_ops_tidy: \"it is tidy\"."} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("call %d was answered %q", i+1, lines[i])
		}
	}
	if placetest.Count(p.Events(id), event.Decided, "rule:analysis-only") != 0 {
		t.Error("what people had allowed passed by the rule")
	}
	ops.mu.Lock()
	done := slices.Clone(ops.done)
	ops.mu.Unlock()
	if !slices.Equal(done, []string{"deploy_production", "count", "look"}) {
		t.Errorf("what happened: %v", done)
	}
	n.Send("operator", "app", "operate")
	p.Until("the operator's calls", func() bool {
		ops.mu.Lock()
		defer ops.mu.Unlock()
		return strings.Count(strings.Join(ops.done, " "), "deploy_production") == 2
	})
	if got, _ := shown.Load("operator"); !slices.Contains(got.([]string), "mcp_ops_deploy_production") || !slices.Contains(got.([]string), "write_file") {
		t.Errorf("the operator was given %v", got)
	}
}

const threeDeep = `
engine: {workers: 4, max_depth: 2, at_depth: HIDE}
providers:
  anthropic: {api_keys: [key-one], base_url: "ANTHROPIC"}
agents:
  one: {kind: llm, model: anthropic/small, prompt: "You are first."}
  two: {kind: llm, model: anthropic/small, prompt: "You are second."}
  three: {kind: llm, model: anthropic/small, prompt: "You are third."}
`

// P24, X4: with at_depth: hide the last of a chain is shown no tool that hands on, under
// the default cycle: strict, which refuses those above it before depth is asked. Its
// callers keep theirs, also once their work has come back.
func TestTheLastOfAChainIsShownNoToolsThatHandOn(t *testing.T) {
	t.Parallel()
	for _, hide := range []string{"hide", "error"} {
		var mu sync.Mutex
		shown := map[string][]string{}
		models := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
			next := map[string]string{"one": "two", "two": "three"}
			for _, who := range []string{"one", "two", "three"} {
				if !strings.Contains(a.System, "You are the agent "+who) {
					continue
				}
				mu.Lock()
				defer mu.Unlock()
				shown[who] = names(a)
				if to := next[who]; to != "" && a.Turn == 1 {
					return modeltest.Use("delegate_to_agent", map[string]any{"agent": to, "task": "go on"})
				}
				return modeltest.Say(who + " heard " + a.Result("delegate_to_agent"))
			}
			return modeltest.Say("nobody")
		})
		t.Cleanup(models.Close)
		p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), strings.NewReplacer("ANTHROPIC", models.Anthropic(), "HIDE", hide).Replace(threeDeep))
		n := p.Start(p.Config, "")
		if s := answered(p, n.Send("one", "", "deep")).Result.Text; s != "one heard two heard three heard" {
			t.Errorf("it ended with %q", s)
		}
		mu.Lock()
		for who, hands := range map[string]bool{"one": true, "two": true, "three": hide == "error"} {
			if got := slices.Contains(shown[who], "delegate_to_agent") && slices.Contains(shown[who], "spawn_agent") && slices.Contains(shown[who], "handoff_to_agent") && slices.Contains(shown[who], "list_agents"); got != hands {
				t.Errorf("at_depth %s: %s was shown %v", hide, who, shown[who])
			}
		}
		mu.Unlock()
		n.Stop()
	}
}
