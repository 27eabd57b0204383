package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/trigger"

	"go.yaml.in/yaml/v3"
)

// triggers makes what starts tasks by itself.
func (b *builder) triggers(registry *agent.Registry, zone *time.Location) []*trigger.Trigger {
	var all []*trigger.Trigger
	places := map[string]int{}
	for i, f := range b.file.Triggers {
		where := at("triggers", i)
		b.triggerName(append(where, "name"), f.Name, i, places)
		b.triggerNames(where, f, registry)
		t, problems := trigger.Compile(b.triggerSpec(where, f, zone))
		for _, p := range problems {
			b.triggerProblem(where, f, p)
		}
		if t.Kind == trigger.Webhook && t.Weak() {
			b.warnings = append(b.warnings, fmt.Sprintf("trigger %s: its secret is shorter than %d characters and could be guessed. Make a longer one, for example with: openssl rand -hex 32", f.Name, trigger.ShortSecret))
		}
		all = append(all, t)
	}
	return all
}

// triggerSpec reads one trigger.
func (b *builder) triggerSpec(where []any, f Trigger, zone *time.Location) trigger.Spec {
	s := trigger.Spec{Name: f.Name, Kind: trigger.Kind(f.Kind), Agent: f.Agent, Capability: f.Capability, Repository: f.Repository, Ref: f.Ref, Task: f.Task, When: f.When,
		Owner: f.Owner, Key: f.Key, Complexity: f.Complexity, Budget: b.allowance(append(where, "budget"), f.Budget), Handoffs: f.Handoffs, Source: trigger.Source(f.Source), Secrets: f.Secrets,
		Header: f.Header, Encoding: f.Encoding, Prefix: f.Prefix, Cron: f.Cron, Overlap: f.Overlap, Missed: f.Missed,
		Window: b.duration(append(where, "window"), f.Window, 0)}
	if f.Rate != nil {
		if s.Rate = *f.Rate; s.Rate == 0 {
			s.Rate = -1 // written, and no rate: 0 would be the default
		}
	}
	if f.Secret != "" {
		s.Secrets = append([]string{f.Secret}, f.Secrets...)
	}
	switch {
	case f.Timezone != "":
		location, err := time.LoadLocation(f.Timezone)
		if err != nil || f.Timezone == "Local" {
			b.bad(append(where, "timezone"), "there is no time zone %q. Write a name such as Europe/Berlin.", f.Timezone)
			location = time.UTC
		}
		s.Zone = location
	case s.Kind == trigger.Schedule:
		s.Zone = zone
	}
	return s
}

// triggerName checks the name, which stands in the address of a webhook.
func (b *builder) triggerName(where []any, name string, i int, places map[string]int) {
	folded := strings.ToLower(name)
	first, taken := places[folded]
	switch {
	case name == "":
		b.bad(where[:2], "trigger %d has no name. Write name: with one; a webhook is called at /hooks/NAME.", i+1)
	case agent.CheckName(name) != nil:
		b.bad(where, "trigger name %q: use letters, digits, - _ and ., starting with a letter or digit.", name)
	case slices.Contains(BotNames(), folded):
		b.bad(where, "/hooks/%s is where %s calls. Give the trigger another name.", folded, origin.Channel(folded).Title())
	case taken:
		b.bad(where, "trigger %d is called %q, too. Give each a name of its own.", first+1, name)
	default:
		places[folded] = i
	}
}

// triggerNames checks what a trigger names elsewhere.
func (b *builder) triggerNames(where []any, f Trigger, registry *agent.Registry) {
	names := each.Of(registry.All(), func(s agent.Spec) string { return s.Name })
	spec, known := registry.Get(f.Agent)
	switch {
	case f.Agent == "" && f.Capability == "":
		b.bad(where, "trigger %s names no agent. Write agent: with one, or capability:.", f.Name)
	case f.Agent != "" && f.Capability != "":
		b.bad(append(where, "capability"), "trigger %s names an agent and a capability. Keep one.", f.Name)
	case f.Agent != "" && !known:
		b.bad(append(where, "agent"), "trigger %s starts %q, which is no agent.%s", f.Name, f.Agent, hint(f.Agent, names))
	case known && spec.Role == agent.CLI:
		b.bad(append(where, "agent"), "trigger %s starts %s, which has the role cli and takes no work. Name another agent.", f.Name, f.Agent)
	case f.Agent == "" && len(registry.ByCapability(f.Capability)) == 0:
		b.bad(append(where, "capability"), "no agent has the capability %q. Name an agent, or add the capability to one.", f.Capability)
	}
	if _, ok := b.file.Repositories[f.Repository]; !ok && f.Repository != "" {
		repositories := slices.Sorted(maps.Keys(b.file.Repositories))
		near := " Add it under repositories."
		if n := Nearest(f.Repository, repositories); n != "" {
			near = fmt.Sprintf(" Did you mean %q?", n)
		}
		b.bad(append(where, "repository"), "trigger %s works on %q, which is no repository.%s", f.Name, f.Repository, near)
	}
	if known && f.Repository != "" && spec.Repository != "" && spec.Repository != f.Repository {
		b.bad(append(where, "repository"), "trigger %s is for %s, and %s works in %s. Leave repository: out, or start an agent that works in %s.", f.Name, f.Repository, f.Agent, spec.Repository, f.Repository)
	}
	switch {
	case f.Owner == "":
		b.bad(where, "trigger %s has no owner. Write owner: with a person's name: they count as who asked, and cannot approve what comes of it.", f.Name)
	case people.CheckUserName(f.Owner) != nil:
		b.bad(append(where, "owner"), "trigger %s: %q can be nobody's name.", f.Name, f.Owner)
	}
}

// triggerProblem notes what is wrong with a field, at its place in the file.
func (b *builder) triggerProblem(where []any, f Trigger, p trigger.Problem) {
	path := append(slices.Clone(where), p.Field)
	if p.Field == "secret" && p.Index >= 0 {
		if p.Index == 0 && f.Secret != "" {
			p.Index = -1
		} else if f.Secret != "" {
			p.Index--
		}
		if p.Index >= 0 {
			path = append(slices.Clone(where), "secrets", p.Index)
		}
	}
	n := b.doc.find(path...)
	problem := b.doc.at(n, fmt.Sprintf("trigger %s: %s", f.Name, p.Message))
	if p.Line > 0 && n != nil && n.Kind == yaml.ScalarNode {
		problem.Line, problem.Column = b.doc.inside(n, p.Line, max(p.Column, 1))
	}
	b.note(n, problem)
}
