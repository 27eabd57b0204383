package config

import (
	"encoding/json"
	"fmt"
	"net"
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
		b.oneOf(append(where, "protocol"), a.Protocol, "plain", "jsonl", agent.ACP)
	}
	if a.Protocol == agent.ACP {
		b.mcpServers(where, a, s)
	}
}

func (b *builder) workflow(where []any, a Agent, s agent.Spec) {
	if len(a.Steps) == 0 {
		b.bad(where, "agent %s is a workflow without steps. Write steps: with at least one.", s.Name)
	}
}

// remote checks an agent of kind remote.
func (b *builder) remote(where []any, a Agent, s agent.Spec) {
	at := func(key string) []any { return append(where[:len(where):len(where)], key) }
	u, ok := webAddress(a.URL)
	switch {
	case a.URL == "":
		b.bad(where, "agent %s has no url. Write url: https://host/path, below which its agent card is.", s.Name)
		return
	case !ok || u.Hostname() == "":
		b.bad(at("url"), "agent %s: its url is no address of a server. Write https://host/path.", s.Name)
		return
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		b.bad(at("url"), "agent %s: its url has a password, a query or a fragment. Write https://host/path, and the secret as token.", s.Name)
	}
	if a.Card != "" && (!strings.HasPrefix(a.Card, "/") || strings.ContainsAny(a.Card, "?#") || strings.Contains(a.Card, "..")) {
		b.bad(at("card"), "agent %s: card %q is no path below its url. Write one such as /.well-known/agent-card.json.", s.Name, a.Card)
	}
	if strings.ContainsFunc(a.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		b.bad(at("token"), "agent %s: its token has a blank or a character that no header takes. Write it as it was given.", s.Name)
	}
	if a.Repository != "" {
		b.bad(at("repository"), "agent %s works elsewhere, and no files are sent to it. Leave repository out, and say in the task what it must know.", s.Name)
	}
	if a.Token != "" && u.Scheme == "http" && !loopback(u.Hostname()) {
		b.warnings = append(b.warnings, fmt.Sprintf("agent %s: its token goes over the network in clear. Use https.", s.Name))
	}
	if s.Budget == nil || s.Budget.Tokens == nil {
		b.warnings = append(b.warnings, fmt.Sprintf("agent %s: an answer that does not say what it used counts as all the tokens that its caller has left. Write budget: {tokens: 20000}, or what it may cost.", s.Name))
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// elsewhere refuses the keys of a remote agent on an agent of this system: they would do
// nothing, and a token does not belong there.
func (b *builder) elsewhere(where []any, a Agent, s agent.Spec) {
	for _, k := range []struct{ key, value string }{{"url", a.URL}, {"token", a.Token}, {"card", a.Card}} {
		if k.value != "" && s.Kind != agent.Remote {
			b.bad(append(where[:len(where):len(where)], k.key), "agent %s: %s is for agents of kind remote; this one is of kind %s. Take it out, or change the kind.", s.Name, k.key, s.Kind)
		}
	}
}

// output reads the JSON Schema that an agent's answers must fit; nil without one.
func (b *builder) output(where []any, name string, written map[string]any) json.RawMessage {
	if written == nil {
		return nil
	}
	schema, err := json.Marshal(written)
	if err == nil {
		err = agent.CheckSchema(schema)
	}
	if err != nil {
		b.bad(where, "agent %s: output is no JSON Schema: %v. Write one such as {type: object, properties: {score: {type: integer}}, required: [score]}.", name, err)
		return nil
	}
	return schema
}
