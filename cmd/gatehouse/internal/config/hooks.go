package config

import (
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/each"
)

// Hook is a program that is run around calls of tools (P20).
type Hook struct {
	Name     string            `yaml:"name"`
	At       string            `yaml:"at"` // before_call or after_call
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
