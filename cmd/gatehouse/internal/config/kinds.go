package config

import (
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
)

// kinds are the kinds of agents that a file may name, in the order in which they are
// offered, each with what it must say; nil where that is nothing.
var kinds = []struct {
	kind  agent.Kind
	check func(b *builder, where []any, a Agent, s agent.Spec)
}{
	{agent.Command, (*builder).command},
	{agent.LLM, (*builder).model},
	{agent.Workflow, (*builder).workflow},
	{agent.Remote, (*builder).remote},
}

// Kinds lists the kinds of agents.
func Kinds() []string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k.kind)
	}
	return words
}

// kind checks what belongs to each kind.
func (b *builder) kind(where []any, a Agent, s agent.Spec) {
	for _, k := range kinds {
		if k.kind == s.Kind && k.check != nil {
			k.check(b, where, a, s)
		}
	}
	if words := Kinds(); !slices.Contains(words, a.Kind) {
		last := len(words) - 1
		b.bad(append(where, "kind"), "agent %s: kind %q is unknown. Write %s or %s.", s.Name, a.Kind, strings.Join(words[:last], ", "), words[last])
	}
}

func (b *builder) command(where []any, a Agent, s agent.Spec) {
	if len(a.Command) == 0 || strings.TrimSpace(a.Command[0]) == "" {
		b.bad(where, "agent %s has no command. Write command: [program, argument].", s.Name)
	}
	if a.Protocol != "" {
		b.oneOf(append(where, "protocol"), a.Protocol, "plain", "jsonl")
	}
}

func (b *builder) workflow(where []any, a Agent, s agent.Spec) {
	if len(a.Steps) == 0 {
		b.bad(where, "agent %s is a workflow without steps. Write steps: with at least one.", s.Name)
	}
}
