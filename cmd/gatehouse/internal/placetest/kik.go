package placetest

import (
	"strings"

	"gatehouse/orchestrator/agent/llm/modeltest"
)

// kikTeam is the example of the first source (K14): KIK plans, VajbCoder writes,
// ReviewAgent looks. PROVIDER and BASE are the service that all three speak to.
const kikTeam = `
engine: {workers: 4, lease: 10m, budget: {tokens: 1000000}}
providers:
  PROVIDER: {api_keys: [test-key-1, test-key-2], base_url: "BASE", prices: {big: {input: 3, output: 15}}}
repositories:
  app: {path: "REPO", branch: main, checks: ["test -f hello.txt"]}
agents:
  KIK: {kind: llm, model: PROVIDER/big, prompt: You plan and hand on.}
  VajbCoder: {kind: llm, model: PROVIDER/big, repository: app, prompt: You write code.}
  ReviewAgent: {kind: llm, model: PROVIDER/big, repository: app, analysis_only: true, approval: auto, prompt: You review.}
`

// KikTeamOf is the configuration for one service.
func KikTeamOf(provider, base string) string {
	return strings.NewReplacer("PROVIDER", provider, "BASE", base).Replace(kikTeam)
}

// Speaks is one of the team's members, as its prompt says.
func Speaks(a modeltest.Ask, name string) bool {
	return strings.Contains(a.System, "You are the agent "+name+". ")
}

// KikWork plays all three models. What a model is shown decides what it says, so that
// the script is the same however often a server died in between.
func KikWork(a modeltest.Ask) modeltest.Answer {
	tool := modeltest.ToolCall
	switch {
	case Speaks(a, "KIK"):
		return []modeltest.Answer{
			{Text: "I hand this on.", Calls: []modeltest.Call{
				tool("shared_context", map[string]any{"action": "set", "namespace": "codebase", "key": "greeting", "value": "Say hello."}),
				tool("delegate_to_agent", map[string]any{"agent": "VajbCoder", "task": "Add the greeting"}),
			}},
			modeltest.Say("KIK heard: " + a.Result("delegate_to_agent")),
		}[min(a.Turn, 2)-1]
	case Speaks(a, "VajbCoder"):
		return []modeltest.Answer{
			{Calls: []modeltest.Call{
				tool("shared_context", map[string]any{"action": "get", "namespace": "codebase", "key": "greeting"}),
				tool("read_file", map[string]any{"path": "README.md"}),
			}},
			modeltest.Use("write_file", map[string]any{"path": "hello.txt", "content": "hello\n"}),
			modeltest.Use("delegate_to_agent", map[string]any{"agent": "ReviewAgent", "task": "Review hello.txt"}),
			modeltest.Say("VajbCoder was told " + greeted(a.Result("shared_context")) + " and heard: " + a.Result("delegate_to_agent")),
		}[min(a.Turn, 4)-1]
	default:
		return []modeltest.Answer{
			modeltest.Use("read_file", map[string]any{"path": "hello.txt"}),
			{Calls: []modeltest.Call{
				tool("delegate_to_agent", map[string]any{"agent": "KIK", "task": "Look, too"}),
				tool("delegate_to_agent", map[string]any{"agent": "VajbCoder", "task": "Look again"}),
			}},
			modeltest.Say("It says " + greeted(a.Result("read_file")) + ". " + a.Result("delegate_to_agent")),
		}[min(a.Turn, 3)-1]
	}
}

// greeted is the greeting where the text has it.
func greeted(text string) string {
	for _, word := range []string{"Say hello.", "hello"} {
		if strings.Contains(text, word) {
			return word
		}
	}
	return "nothing: " + text
}

// KikAsks is how many answers the whole work takes: 2, 4 and 3.
const KikAsks = 9
