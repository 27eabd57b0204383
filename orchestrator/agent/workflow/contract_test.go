package workflow

import (
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// TestContract runs what every kind of agent fulfils. A workflow has no work of its
// own that could hang; and a refusal that no later step reads ends it, which
// TestStepThatDoesNotComplete and TestLaterConditionDealsWithTheState show.
func TestContract(t *testing.T) {
	one := func(task, text string) func(*testing.T) agenttest.Case {
		return func(*testing.T) agenttest.Case {
			return agenttest.Case{Job: job(agent.Step{ID: "see", Agent: "helper", Task: task}), Text: text}
		}
	}
	agenttest.Suite(t, func(*testing.T) agent.Runner { return New(Options{}) }, agenttest.Behaviours{
		Answers:    one("look at {{.Task}}", "helper: look at the retry loop"),
		Fails:      one("{{.Artifacts.None}}", ""),
		Progresses: one("look", "step see → helper"),
		Delegates:  one("look", ""),
	})
}
