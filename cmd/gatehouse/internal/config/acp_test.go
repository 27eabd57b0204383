package config

import (
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
)

// The servers of an agent that speaks the Agent Client Protocol are checked like those of a
// model; a program that speaks anything else has no use for them.
func TestServersOfAProgramAreForACP(t *testing.T) {
	const servers = "mcp: [{name: deploy, command: [deployer]}, {name: docs, url: \"https://docs.example.org/mcp\"}]"
	c, err := Parse("", []byte("agents:\n  a: {kind: command, protocol: acp, command: [x], "+servers+"}\n"), env())
	if err != nil || len(c.Warnings) > 0 {
		t.Fatalf("%v, warnings %q", err, c.Warnings)
	}
	if a, _ := c.Engine.Agents.Get("a"); a.Protocol != agent.ACP || len(a.MCP) != 2 || a.MCP[1].URL != "https://docs.example.org/mcp" {
		t.Errorf("it is %+v", a)
	}
	c, err = Parse("", []byte("agents:\n  a: {kind: command, protocol: jsonl, command: [x], "+servers+"}\n"), env())
	if err != nil || !strings.Contains(strings.Join(c.Warnings, " "), "mcp is for agents of kind llm") {
		t.Errorf("%v, warnings %q", err, c.Warnings)
	}
	for text, want := range map[string]string{
		"{kind: command, protocol: acp, command: [x], mcp: [{name: deploy}]}": "needs a command or a url",
		"{kind: command, protocol: acq, command: [x]}":                        "acp",
	} {
		if _, err := Parse("", []byte("agents:\n  a: "+text+"\n"), env()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
