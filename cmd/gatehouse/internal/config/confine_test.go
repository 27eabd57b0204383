package config

import (
	"testing"

	"gatehouse/orchestrator/agent"
)

// A figure that an agent does not have is that of engine.agent_defaults; what it says itself
// stands.
func TestLimitsComeFromTheAgentOrTheDefaults(t *testing.T) {
	c, err := Parse("", []byte(`engine:
  agent_defaults: {sandbox: required, network: off, limits: {memory: 2G, processes: 256, files: 4GiB}}
agents:
  a: {kind: command, command: [x]}
  b: {kind: command, command: [x], sandbox: auto, network: open, limits: {memory: 1.5g, cpu: 2}}
  w: {kind: workflow, steps: [{id: s, agent: a, task: t}]}
`), env())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := c.Engine.Agents.Get("a")
	b, _ := c.Engine.Agents.Get("b")
	w, _ := c.Engine.Agents.Get("w")
	all := agent.Limits{Memory: 2 << 30, Processes: 256, Files: 4 << 30}
	if a.Limits != all || a.Sandbox != agent.SandboxRequired || a.Network != agent.NetworkOff {
		t.Errorf("a has %+v, %s, %s", a.Limits, a.Sandbox, a.Network)
	}
	if want := (agent.Limits{Memory: 3 << 29, Processes: 256, Files: 4 << 30, CPU: 2}); b.Limits != want || b.Sandbox != agent.SandboxAuto || b.Network != agent.NetworkOpen {
		t.Errorf("b has %+v, %s, %s", b.Limits, b.Sandbox, b.Network)
	}
	if w.Network != agent.NetworkOpen {
		t.Errorf("a workflow, which runs no program, has network %s", w.Network)
	}
	if c.CheckLimits != all {
		t.Errorf("checks have %+v", c.CheckLimits)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"512M": 512 << 20, "2G": 2 << 30, "2 GB": 2 << 30, "1.5GiB": 3 << 29, "4096": 4096, "7k": 7 << 10} {
		if n, ok := sizeOf(text); !ok || n != want {
			t.Errorf("%s is %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "much", "-1G", "1P", "G", "1e9"} {
		if n, ok := sizeOf(text); ok {
			t.Errorf("%q was read as %d", text, n)
		}
	}
}
