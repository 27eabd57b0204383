package command

import (
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// Both protocols fulfil the contract of every kind.
func TestCommandFulfilsTheContract(t *testing.T) {
	newRunner := func(t *testing.T) agent.Runner { return testRunner(t) }
	t.Run("plain", func(t *testing.T) {
		var hanging agent.Job
		agenttest.Suite(t, newRunner, agenttest.Behaviours{
			Answers:    func(t *testing.T) agenttest.Case { return agenttest.Case{Job: shell(t, `cat`), Text: "fix it"} },
			Fails:      func(t *testing.T) agenttest.Case { return agenttest.Case{Job: shell(t, `exit 3`)} },
			Progresses: func(t *testing.T) agenttest.Case { return agenttest.Case{Job: shell(t, `echo half >&2`), Text: "half"} },
			Hangs: func(t *testing.T) agenttest.Case {
				hanging = shell(t, `echo begun >&2; (setsid sleep 600 &); sleep 600`)
				return agenttest.Case{Job: hanging}
			},
			Left: func() []string { return marked(hanging) },
		})
	})
	t.Run("jsonl", func(t *testing.T) {
		const delegating = `read task
			echo '{"type":"delegate","to":"helper","text":"look","ref":"r1"}'
			read answer
			printf '{"type":"result","text":"%s"}\n' "$(printf %s "$answer" | tr -d '"\\')"`
		talk := func(script string) func(t *testing.T) agenttest.Case {
			return func(t *testing.T) agenttest.Case {
				return agenttest.Case{Job: shell(t, script, jsonl), Text: "half"}
			}
		}
		var hanging agent.Job
		agenttest.Suite(t, newRunner, agenttest.Behaviours{
			Answers:    talk(`echo '{"type":"result","text":"half"}'`),
			Fails:      talk(`echo nonsense`),
			Progresses: talk(`echo '{"type":"progress","text":"half"}'; echo '{"type":"result","text":"x"}'`),
			Hangs: func(t *testing.T) agenttest.Case {
				hanging = shell(t, `echo '{"type":"progress","text":"half"}'; trap '' TERM; while :; do sleep 1; done`, jsonl)
				return agenttest.Case{Job: hanging}
			},
			Left:      func() []string { return marked(hanging) },
			Delegates: talk(delegating),
			Refused:   talk(delegating),
		})
	})
}

func TestAnACPAgentFulfilsTheContract(t *testing.T) {
	behaves := func(behaviour, text string) func(t *testing.T) agenttest.Case {
		return func(t *testing.T) agenttest.Case { return agenttest.Case{Job: acpAgent(t, behaviour), Text: text} }
	}
	var hanging agent.Job
	agenttest.Suite(t, func(t *testing.T) agent.Runner { return testRunner(t) }, agenttest.Behaviours{
		Answers:    behaves("works", "All is done."),
		Fails:      behaves("dies", ""),
		Progresses: behaves("works", "I look around."),
		Hangs: func(t *testing.T) agenttest.Case {
			hanging = acpAgent(t, "deaf")
			return agenttest.Case{Job: hanging}
		},
		Left: func() []string { return marked(hanging) },
	})
}

// The scripted agent is held to the same contract, so that tests with it are true.
func TestScriptedFulfilsTheContract(t *testing.T) {
	suite := func(name string, script agenttest.Script, b agenttest.Behaviours) {
		t.Run(name, func(t *testing.T) {
			agenttest.Suite(t, func(*testing.T) agent.Runner { return agenttest.NewScripted(script) }, b)
		})
	}
	is := func(text string) func(*testing.T) agenttest.Case {
		return func(*testing.T) agenttest.Case {
			return agenttest.Case{Job: agent.Job{Text: "look"}, Text: text}
		}
	}
	suite("answers", agenttest.Answer("yes"), agenttest.Behaviours{Answers: is("yes")})
	suite("fails", agenttest.Fail(agent.CodeExit, "It broke."), agenttest.Behaviours{Fails: is("")})
	suite("hands on", agenttest.HandOn("helper"), agenttest.Behaviours{Delegates: is(""), Refused: is("")})
	suite("parks", agenttest.Park("helper"), agenttest.Behaviours{Delegates: is(""), Refused: is("")})
}
