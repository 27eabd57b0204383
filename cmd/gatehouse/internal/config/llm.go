package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/agent/llm/model/providers"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/each"
)

// Loop are the thresholds of the loop detector, in calls (P30, P35).
type Loop struct {
	Window  int `yaml:"window" range:"2 10000"`
	Warn    int `yaml:"warn" range:"2 10000"`
	Block   int `yaml:"block" range:"2 10000"`
	Breaker int `yaml:"breaker" range:"2 10000"`
}

// MCPServer is a server of the Model Context Protocol: a program, or a URL.
type MCPServer struct {
	Name    string            `yaml:"name"`
	Command []string          `yaml:"command"`
	Env     map[string]string `yaml:"env"`
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	Safe    []string          `yaml:"safe"`
}

// Allowance is the most that one delegation to an agent may use.
type Allowance struct {
	Tokens   *int64   `yaml:"tokens"`
	USD      *float64 `yaml:"usd"`
	Handoffs *int     `yaml:"handoffs"`
	Agents   *int     `yaml:"agents"`
	Time     string   `yaml:"time"`
}

// llm reads the engine's settings of model agents. The defaults are picoclaw's (P35).
func (b *builder) llm() llm.Settings {
	l, usual := b.file.Engine.Loop, llm.DefaultLoop
	s := llm.Settings{Loop: llm.LoopLimits{Window: cmp.Or(l.Window, usual.Window), Warn: cmp.Or(l.Warn, usual.Warn),
		Block: cmp.Or(l.Block, usual.Block), Breaker: cmp.Or(l.Breaker, usual.Breaker)}}
	if s.Loop.Warn > s.Loop.Block || s.Loop.Block > s.Loop.Breaker || s.Loop.Block > s.Loop.Window {
		b.bad(at("engine", "loop"), "loop: warn %d, block %d, breaker %d and window %d do not go together. Let each be as large as the one before or larger, and the window at least as large as block.",
			s.Loop.Warn, s.Loop.Block, s.Loop.Breaker, s.Loop.Window)
	}
	s.HideAtDepth = b.file.Engine.AtDepth == "hide"
	return s
}

// modelKeys takes over what an agent has for its model. Every kind may have a budget.
func (b *builder) modelKeys(where []any, a Agent, s *agent.Spec) {
	s.Fallbacks, s.MaxTurns, s.MaxTokens = a.Fallbacks, a.MaxTurns, a.MaxTokens
	s.Tools.Deny = a.Tools.Deny
	if a.Tools.Allow != nil {
		s.Tools.Allow = append([]string{}, *a.Tools.Allow...)
	}
	for _, m := range a.MCP {
		s.MCP = append(s.MCP, agent.MCPServer(m))
	}
	s.Budget = b.allowance(append(where, "budget"), a.Budget)
	b.idleKeys(a, s)
}

// idleKeys warns of keys that only another kind reads.
func (b *builder) idleKeys(a Agent, s *agent.Spec) {
	for _, k := range []struct {
		name string
		kind agent.Kind
		set  bool
	}{
		{"model", agent.LLM, a.Model != ""}, {"fallbacks", agent.LLM, len(a.Fallbacks) > 0}, {"tools", agent.LLM, a.Tools.Allow != nil || len(a.Tools.Deny) > 0},
		{"mcp", agent.LLM, len(a.MCP) > 0 && s.Protocol != agent.ACP}, {"max_turns", agent.LLM, a.MaxTurns != 0}, {"max_tokens", agent.LLM, a.MaxTokens != 0},
		{"command", agent.Command, len(a.Command) > 0}, {"protocol", agent.Command, a.Protocol != ""}, {"steps", agent.Workflow, len(a.Steps) > 0},
	} {
		if k.set && k.kind != s.Kind {
			b.warnings = append(b.warnings, fmt.Sprintf("agent %s: %s is for agents of kind %s; %s is of kind %s, where it does nothing. Take it out, or change the kind.", s.Name, k.name, k.kind, s.Name, s.Kind))
		}
	}
}

// allowance makes a budget of what is written.
func (b *builder) allowance(where []any, a *Allowance) *budget.Limits {
	if a == nil {
		return nil
	}
	l := &budget.Limits{Tokens: a.Tokens, Handoffs: a.Handoffs, Agents: a.Agents}
	if a.Tokens != nil && *a.Tokens < 0 || a.Handoffs != nil && *a.Handoffs < 0 || a.Agents != nil && *a.Agents < 1 {
		b.bad(where, "budget: an amount is below what there can be. Write `tokens` and `handoffs` of 0 or more, and `agents` of 1 or more.")
	}
	if a.USD != nil {
		if !(*a.USD >= 0) || *a.USD > 1e9 || math.IsInf(*a.USD, 0) {
			b.bad(append(where, "usd"), "usd: %v is no amount of money. Write 0 or more.", *a.USD)
		}
		micro := int64(math.Round(*a.USD * 1e6))
		l.MicroUSD = &micro
	}
	if a.Time != "" {
		d := b.duration(append(where, "time"), a.Time, time.Minute)
		l.Time = &d
	}
	return l
}

// model checks an agent of kind llm.
func (b *builder) model(where []any, a Agent, s agent.Spec) {
	if a.Model == "" {
		b.bad(where, "agent %s has no model. Write model: provider/name, such as anthropic/claude-sonnet-4-5.", s.Name)
	} else {
		b.modelName(append(where, "model"), s.Name, a.Model)
	}
	for i, name := range a.Fallbacks {
		b.modelName(append(where, "fallbacks", i), s.Name, name)
	}
	if a.Tools.Allow != nil {
		b.toolNames(append(where, "tools", "allow"), "agent "+s.Name, *a.Tools.Allow)
	}
	b.toolNames(append(where, "tools", "deny"), "agent "+s.Name, a.Tools.Deny)
	b.mcpServers(where, a, s)
}

// mcpServers checks the servers of an agent that uses them.
func (b *builder) mcpServers(where []any, a Agent, s agent.Spec) {
	seen := map[string]bool{}
	for i, m := range a.MCP {
		b.mcpServer(append(where[:len(where):len(where)], "mcp", i), s.Name, m, seen)
	}
}

// modelName checks provider/name. The name is the provider's own affair.
func (b *builder) modelName(where []any, agentName, name string) {
	provider, own, ok := strings.Cut(name, "/")
	if !ok || provider == "" || strings.TrimSpace(own) == "" {
		b.bad(where, "agent %s: model %q is no provider/name. Write one such as anthropic/claude-sonnet-4-5.", agentName, name)
		return
	}
	if _, ok := b.file.Providers[provider]; ok {
		return
	}
	if provider == providers.Anthropic || provider == providers.OpenAI {
		b.warnings = append(b.warnings, "agent "+agentName+": there is no key for "+provider+"; tasks for it fail. Write api_keys: under providers."+provider+".")
		return
	}
	known := slices.Sorted(maps.Keys(b.file.Providers))
	b.bad(where, "agent %s: model %q is of %q, which is no provider.%s", agentName, name, provider, strings.Replace(hint(provider, append(known, providers.Anthropic, providers.OpenAI)), "agents", "providers", 1))
}

// toolNames checks which tools an agent or a hook names (P22).
func (b *builder) toolNames(where []any, whose string, names []string) {
	for i, name := range names {
		if llm.KnownTool(name) {
			continue
		}
		known := llm.KnownTools()
		b.bad(append(slices.Clone(where), i), "%s: there is no tool or group %q.%s Write one of %s, or the name of an MCP server's tool, mcp_SERVER_TOOL.",
			whose, name, strings.Replace(hint(name, known), " Add it under agents, or take it out.", "", 1), strings.Join(known, ", "))
	}
}

// mcpServer checks one server.
func (b *builder) mcpServer(where []any, agentName string, m MCPServer, seen map[string]bool) {
	if m.Name == "" || strings.Trim(strings.ToLower(m.Name), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(m.Name) > 24 {
		b.bad(where, "agent %s: an MCP server needs a name of letters, digits and dashes, up to 24. It becomes part of its tools' names.", agentName)
	}
	if key := strings.ToLower(m.Name); seen[key] {
		b.bad(append(where, "name"), "agent %s: there are two MCP servers %q. Rename one.", agentName, m.Name)
	} else {
		seen[key] = true
	}
	for i, tool := range m.Safe {
		if strings.TrimSpace(tool) == "" || strings.HasPrefix(tool, "mcp_") {
			b.bad(append(slices.Clone(where), "safe", i), "agent %s: MCP server %s: safe names tools as the server calls them, not %q. Write the name without mcp_%s_.", agentName, m.Name, tool, m.Name)
		}
	}
	switch program := len(m.Command) > 0 && strings.TrimSpace(m.Command[0]) != ""; {
	case program == (m.URL != ""):
		b.bad(where, "agent %s: MCP server %s needs a command or a url, one of them.", agentName, m.Name)
	case m.URL != "":
		if _, ok := webAddress(m.URL); !ok {
			b.bad(append(where, "url"), "%q is no address of a server. Write https://host/path.", masked(m.URL))
		}
	}
}

// Hook is a program that is run around calls of tools (P20).
type Hook struct {
	Name     string            `yaml:"name"`
	At       string            `yaml:"at" offers:"before_call after_call"` // before_call or after_call
	Command  []string          `yaml:"command"`
	Agents   []string          `yaml:"agents"` // whose calls; absent: everybody's
	Tools    []string          `yaml:"tools"`  // names or groups; absent: all
	Timeout  string            `yaml:"timeout"`
	Env      map[string]string `yaml:"env"`
	Writable []string          `yaml:"writable"`
}

const (
	hookTime    = 10 * time.Second // where a hook does not say
	maxHookTime = time.Minute
)

// hooks reads the programs around calls. A call waits for them, so that their time is short.
func (b *builder) hooks(registry *agent.Registry) []llm.HookProgram {
	var all []llm.HookProgram
	seen := map[string]bool{}
	for i, h := range b.file.Hooks {
		where := func(key ...any) []any { return append(at("hooks", i), key...) }
		if err := agent.CheckName(h.Name); err != nil || seen[h.Name] {
			b.bad(where("name"), "hook name %q: each hook needs one of its own, of letters, digits, - _ and ., starting with a letter or digit.", h.Name)
		}
		seen[h.Name] = true
		b.oneOf(where("at"), h.At, llm.BeforeCall, llm.AfterCall)
		p := llm.HookProgram{Name: h.Name, At: h.At, Agents: h.Agents, Tools: h.Tools, Env: h.Env, Timeout: b.duration(where("timeout"), h.Timeout, hookTime)}
		if p.Timeout > maxHookTime {
			b.bad(where("timeout"), "timeout: %s is too long for a hook, because every call waits for it. Write %s or less.", p.Timeout, agent.Span(maxHookTime))
		}
		if len(h.Command) == 0 || strings.TrimSpace(h.Command[0]) == "" {
			b.bad(where(), "hook %s has no command. Write command: [program, argument].", h.Name)
			continue
		}
		p.Command = slices.Clone(h.Command)
		if strings.Contains(p.Command[0], "/") {
			p.Command[0] = b.path(p.Command[0])
		}
		p.Writable = each.Of(h.Writable, b.path)
		if h.Agents != nil && len(h.Agents) == 0 {
			b.bad(where("agents"), "hook %s: agents is empty, so it would guard nobody. Name agents, or take the key out for all of them.", h.Name)
		}
		if h.Tools != nil && len(h.Tools) == 0 {
			b.bad(where("tools"), "hook %s: tools is empty, so it would guard no call. Name tools, or take the key out for all of them.", h.Name)
		}
		b.hookAgents(where, h, registry)
		b.toolNames(where("tools"), "hook "+h.Name, h.Tools)
		all = append(all, p)
	}
	return all
}

// hookAgents checks whose calls a hook is about: agents with a model.
func (b *builder) hookAgents(where func(...any) []any, h Hook, registry *agent.Registry) {
	var known []string
	for _, a := range registry.All() {
		if a.Kind == agent.LLM {
			known = append(known, a.Name)
		}
	}
	for i, name := range h.Agents {
		if a, ok := registry.Get(name); !ok || a.Kind != agent.LLM {
			b.bad(where("agents", i), "hook %s: %q is no agent of kind llm, and only models call tools here.%s", h.Name, name, hint(name, known))
		}
	}
}
