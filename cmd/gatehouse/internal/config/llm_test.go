package config

import (
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm"
)

// What belongs to a model agent is read, with the defaults of the sources (P23, P35). Role,
// prompt and capabilities reach the registry that the engine resolves by (P8).
func TestAModelAgentIsUnderstood(t *testing.T) {
	c, err := Parse("", []byte(`providers:
  anthropic: {api_keys: [k]}
  local: {base_url: "http://127.0.0.1:9/v1"}
engine:
  at_depth: hide
  loop: {warn: 5}
agents:
  kik:
    kind: llm
    role: admin
    capabilities: [planning, review]
    model: anthropic/claude-sonnet-4-5
    fallbacks: [local/a/b]
    prompt: You plan.
    tools: {allow: [group:all, mcp_docs_find], deny: [write_file]}
    mcp:
      - {name: docs, url: "https://example.org/mcp", headers: {X-Team: a}}
      - {name: local, command: [tool, --serve], env: {MODE: b}}
    max_turns: 7
    max_tokens: 900
    budget: {tokens: 5000, usd: 0.25, handoffs: 2, time: 3m}
  none: {kind: llm, model: local/x, tools: {allow: []}}
`), env())
	if err != nil || len(c.Warnings) > 0 {
		t.Fatal(err, c)
	}
	s, _ := c.Engine.Agents.Get("kik")
	if len(s.Fallbacks) != 1 || len(s.Tools.Allow) != 2 || s.Tools.Deny[0] != "write_file" || s.MaxTurns != 7 || s.MaxTokens != 900 {
		t.Errorf("kik is %+v", s)
	}
	if able := c.Engine.Agents.ByCapability("review"); len(able) != 1 || able[0].Name != "kik" || s.Role != agent.Admin || s.Prompt != "You plan." {
		t.Errorf("kik has the role %q, says %q and is found as %v", s.Role, s.Prompt, able)
	}
	if len(s.MCP) != 2 || s.MCP[0].Headers["X-Team"] != "a" || s.MCP[1].Command[1] != "--serve" || s.MCP[1].Env["MODE"] != "b" {
		t.Errorf("its servers are %+v", s.MCP)
	}
	if b := s.Budget; *b.Tokens != 5000 || *b.MicroUSD != 250_000 || *b.Handoffs != 2 || *b.Time != 3*time.Minute {
		t.Errorf("its budget is %+v", b)
	}
	none, _ := c.Engine.Agents.Get("none")
	if none.Tools.Allow == nil || llm.Allowed(none.Tools, "search") {
		t.Error("an empty allow-list must allow nothing")
	}
	if c.LLM.Loop != (llm.LoopLimits{Window: 30, Warn: 5, Block: 20, Breaker: 30}) || !c.LLM.HideAtDepth {
		t.Errorf("settings are %+v", c.LLM)
	}
}

// Each mistake is named with its place.
func TestMistakesOfModelAgents(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no model", "agents: {a: {kind: llm}}", "agent a has no model"},
		{"a model of no provider", "agents: {a: {kind: llm, model: sonnet}}", "no provider/name"},
		{"a provider that is none", "providers: {anthropic: {api_key: k}}\nagents: {a: {kind: llm, model: antropic/x}}", `Did you mean "anthropic"?`},
		{"a fallback of no provider", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, fallbacks: [y]}}", "no provider/name"},
		{"an unknown group (P22)", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, tools: {allow: [group:delegatoin]}}}", `:2:58: agent a: there is no tool or group "group:delegatoin". Did you mean "group:delegation"?`},
		{"an unknown tool (P22)", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, tools: {deny: [rm]}}}", `no tool or group "rm"`},
		{"a server without a way", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, mcp: [{name: m}]}}", "needs a command or a url"},
		{"a server with two ways", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, mcp: [{name: m, url: http://x, command: [y]}]}}", "one of them"},
		{"a server at no address", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, mcp: [{name: m, url: ftp://x}]}}", "no address of a server"},
		{"a server whose name hides another", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, mcp: [{name: a_b, url: http://x}]}}", "needs a name of letters"},
		{"two servers of one name", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, mcp: [{name: m, url: http://x}, {name: M, url: http://y}]}}", "two MCP servers"},
		{"turns below 0", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, max_turns: -1}}", "max_turns: -1 is out of range"},
		{"a budget below 0", "providers: {openai: {api_key: k}}\nagents: {a: {kind: llm, model: openai/x, budget: {tokens: -1}}}", "below what there can be"},
		{"thresholds upside down (P35)", "engine: {loop: {warn: 25}}", "do not go together"},
		{"a word that is none (P24)", "engine: {at_depth: drop}", "Write error or hide"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("", []byte(c.text+"\n"), env())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v lacks %q", err, c.want)
			}
		})
	}
}
