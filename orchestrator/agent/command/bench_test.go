package command

import (
	"os"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// BenchmarkRun is what it costs to run a program that does nothing, by sandbox.
func BenchmarkRun(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, mode := range []string{"auto", "off"} {
		b.Run(mode, func(b *testing.B) {
			r := New(Options{Self: self, Sandbox: mode})
			job := agent.Job{Dir: b.TempDir(), ScratchDir: b.TempDir(), Agent: agent.Spec{Name: "noop", Command: []string{"true"}}}
			for b.Loop() {
				if _, err := r.Run(b.Context(), job, agenttest.NewHost()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
