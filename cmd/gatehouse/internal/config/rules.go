package config

import (
	"fmt"
	"os"
	"slices"

	"gatehouse/approval/policy"
	"gatehouse/web/wire"

	"go.yaml.in/yaml/v3"
)

// LoadRules reads the rules that a file has to be tried: a whole gatehouse.yaml, one with
// the keys approval, rules and groups alone, or the bare list. Without groups in the file
// those that rules name are left to the server, which knows them. A file with rules of one kind
// alone leaves those of the other to the server. Mistakes are Problems.
func LoadRules(path string, env func(string) (string, bool)) (none wire.PolicyTest, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return none, fmt.Errorf("the rules cannot be read: %w", err)
	}
	d, err := read(path, text)
	if err != nil {
		return none, err
	}
	if !d.part() {
		c, err := parseFrom(path, text, sources{env: env, needed: needed("approval", "groups")})
		if err != nil {
			return none, err
		}
		return Tried(c.File), nil
	}
	d.root = whole(d.root)
	_, f, err := d.decode(sources{env: env, needed: everything})
	if err != nil {
		return none, err
	}
	b := &builder{doc: d, file: f}
	if f.Groups == nil {
		b.file.Approval.Rules, b.file.Approval.Actions = slices.Clone(f.Approval.Rules), slices.Clone(f.Approval.Actions)
		for i := range b.file.Approval.Rules {
			b.file.Approval.Rules[i].From = nil
		}
		for i := range b.file.Approval.Actions {
			b.file.Approval.Actions[i].From = nil
		}
	}
	b.policy()
	if b.actions(); len(b.problems) > 0 {
		return none, b.problems
	}
	tried := Tried(f)
	switch {
	case f.Approval.Rules == nil && f.Approval.Actions != nil:
		tried.Rules = nil
	case f.Approval.Actions == nil:
		tried.Actions = nil
	}
	return tried, nil
}

// Tried are the rules of a file as a server tries them.
func Tried(f File) wire.PolicyTest {
	return wire.PolicyTest{Rules: new(append([]wire.PolicyRule{}, f.Approval.Rules...)), Actions: new(append([]wire.PolicyRule{}, f.Approval.Actions...))}
}

// part reports whether the document is about rules and nothing else.
func (d *document) part() bool {
	if d.root == nil || d.root.Kind == yaml.SequenceNode {
		return true
	}
	for i := 0; d.root.Kind == yaml.MappingNode && i+1 < len(d.root.Content); i += 2 {
		if !slices.Contains([]string{"approval", "rules", "groups"}, d.root.Content[i].Value) {
			return false
		}
	}
	return d.root.Kind == yaml.MappingNode
}

// whole puts rules that stand alone where a File has them. Every node keeps its place.
func whole(n *yaml.Node) *yaml.Node {
	if n == nil {
		return nil
	}
	under := func(name string, v *yaml.Node) *yaml.Node {
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: v.Line, Column: v.Column}
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{key, v}, Line: v.Line, Column: v.Column}
	}
	if n.Kind == yaml.SequenceNode {
		return under("approval", under("rules", n))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Value == "rules" {
			value := under("rules", n.Content[i+1])
			key.Value, n.Content[i+1] = "approval", value
		}
	}
	return n
}

// Hints are the rules that work but that some requester could never satisfy, each with
// its place. They need the text of the file once more: a Config keeps no places.
func (c *Config) Hints() []string {
	found, handed, called := c.Policy.Hints(c.Groups, c.FourEyes), c.Handovers.Hints(c.Groups, c.FourEyes), c.Actions.Hints(c.Groups, c.FourEyes)
	trusting := c.trusting()
	if len(found)+len(handed)+len(called)+len(trusting) == 0 || c.Path == "" {
		return nil
	}
	d := &document{name: c.Path}
	if text, err := os.ReadFile(c.Path); err == nil {
		// What the variables hold moves no rule to another place.
		if read, _, err := parse(c.Path, text, nowhere); err == nil {
			d = read
		}
	}
	hints := make([]string, 0, len(found)+len(handed)+len(called))
	for _, of := range []struct {
		list  string
		hints []policy.Problem
	}{{"rules", found}, {"handovers", handed}, {"actions", called}} {
		for _, p := range of.hints {
			hints = append(hints, d.at(d.find("approval", of.list, p.Rule, p.Field), p.Message).Error())
		}
	}
	for _, name := range trusting {
		hints = append(hints, d.at(d.find("agents", name, "trust_checkout"), fmt.Sprintf(
			"agent %s has trust_checkout and nobody is asked before it works, so any agent that hands it work chooses what it runs. Add ask_first: true, or remove trust_checkout.", name)).Error())
	}
	return hints
}

// trusting are the agents that run what their callers left them, with nobody asked first.
func (c *Config) trusting() []string {
	var names []string
	for _, a := range c.Engine.Agents.All() {
		if a.TrustCheckout && !a.AskFirst {
			names = append(names, a.Name)
		}
	}
	return names
}
