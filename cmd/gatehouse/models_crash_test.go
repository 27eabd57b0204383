package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"
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

// kikTeamOf is the configuration for one service.
func kikTeamOf(provider, base string) string {
	return strings.NewReplacer("PROVIDER", provider, "BASE", base).Replace(kikTeam)
}

// speaks is one of the team's members, as its prompt says.
func speaks(a modeltest.Ask, name string) bool {
	return strings.Contains(a.System, "You are the agent "+name+". ")
}

// kikWork plays all three models. What a model is shown decides what it says, so that
// the script is the same however often a server died in between.
func kikWork(a modeltest.Ask) modeltest.Answer {
	tool := modeltest.ToolCall
	switch {
	case speaks(a, "KIK"):
		return []modeltest.Answer{
			{Text: "I hand this on.", Calls: []modeltest.Call{
				tool("shared_context", map[string]any{"action": "set", "namespace": "codebase", "key": "greeting", "value": "Say hello."}),
				tool("delegate_to_agent", map[string]any{"agent": "VajbCoder", "task": "Add the greeting"}),
			}},
			modeltest.Say("KIK heard: " + a.Result("delegate_to_agent")),
		}[min(a.Turn, 2)-1]
	case speaks(a, "VajbCoder"):
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

// kikAsks is how many answers the whole work takes: 2, 4 and 3.
const kikAsks = 9

// services runs a story with each wire format, on one of the databases each.
func services(t *testing.T, script modeltest.Script, story func(p *place, fake *modeltest.Server)) {
	places(t, func(t *testing.T, database string) {
		fake := modeltest.Start(script)
		t.Cleanup(fake.Close)
		config := kikTeamOf("anthropic", fake.Anthropic())
		if !strings.HasPrefix(database, "sqlite:") {
			config = kikTeamOf("openai", fake.OpenAI())
		}
		story(newPlace(t, database, config), fake)
	})
}

// ended checks the end of the team's work: the verdict came up through every caller
// (K15), the greeting landed by one decision, and nobody was visited twice.
func (p *place) ended(task string) orchestrator.Delegation {
	p.Helper()
	root := p.root(task)
	if root.State != orchestrator.Completed || root.Result == nil {
		p.Fatalf("KIK is %s: %+v", root.State, root.Error)
	}
	p.landedOnce(task)
	// Every answer is repeated by who asked for it, so KIK's has all three (K15), and
	// what VajbCoder was told shows that the context was shared (K27).
	for _, want := range []string{"KIK heard:", "VajbCoder was told Say hello.", "It says hello.", "already in delegation chain", "KIK → VajbCoder → ReviewAgent → VajbCoder"} {
		if !strings.Contains(root.Result.Text, want) {
			p.Errorf("the answer lacks %q: %s", want, root.Result.Text)
		}
	}
	events := p.events(task)
	if got := count(events, event.Delegated, ""); got != 2 {
		p.Errorf("%d hand-overs, want 2", got)
	}
	if got := count(events, event.DelegationRefused, "ReviewAgent"); got != 2 { // K14
		p.Errorf("ReviewAgent was refused %d times, want twice", got)
	}
	if got := count(events, event.MessageCompleted, ""); got != kikAsks {
		p.Errorf("%d answers of models are on record, want %d", got, kikAsks)
	}
	if text := git(p.T, p.repo, "show", "main:hello.txt"); text != "hello" {
		p.Errorf("main has hello.txt with %q", text)
	}
	return root
}

// comesThrough starts the server again each time it dies until the task has ended, and
// says yes to what is asked. It returns how often the server was started.
func (p *place) comesThrough(point string, strike func(n *node)) (task string, starts int) {
	p.Helper()
	for starts = 1; starts <= 60; starts++ {
		n := p.start(p.config, point)
		if again, err := n.submit("KIK", "", "once"); err == nil { // the server may die before it answers
			if task != "" && again.ID != task {
				p.Fatalf("the key gives another task, %s, than before, %s", again.ID, task)
			}
			task = again.ID
		}
		if strike != nil {
			go strike(n)
		}
		over := false
		p.until("the server's death or the task's end", func() bool {
			select {
			case <-n.ended:
				return true
			default:
			}
			if task == "" {
				return false
			}
			for _, r := range p.requests(task, approval.Pending) {
				n.decide(r) //nolint:errcheck // the server may die before it answers
			}
			over = p.root(task).State.Ended()
			return over
		})
		if over {
			return task, starts
		}
	}
	p.Fatal("the work does not come to its end")
	return "", 0
}

// TestAServerKilledAtEveryTurn: the server dies right after each turn that it stored,
// one after another, through the whole work. No stored turn is asked for again, and
// the work ends the same (O18).
func TestAServerKilledAtEveryTurn(t *testing.T) {
	t.Parallel()
	services(t, kikWork, func(p *place, fake *modeltest.Server) {
		task, starts := p.comesThrough("turn stored#1", nil)
		p.ended(task)
		if starts < kikAsks {
			p.Errorf("the server was killed %d times only", starts-1)
		}
		if asks := len(fake.Asks()); asks != kikAsks || fake.Repeats() != 0 {
			p.Errorf("%d calls, %d of them again; want %d, none again", asks, fake.Repeats(), kikAsks)
		}
	})
}

// TestAServerKilledInEveryAnswer: the server dies in the middle of each answer. Only
// that one call is made again.
func TestAServerKilledInEveryAnswer(t *testing.T) {
	t.Parallel()
	begun := map[string]chan struct{}{modeltest.Messages: make(chan struct{}, kikAsks), modeltest.Chat: make(chan struct{}, kikAsks)}
	services(t, func(a modeltest.Ask) modeltest.Answer {
		answer := kikWork(a)
		if a.N == 1 {
			answer.Hang = 2 // the answer has begun, and never ends
			begun[a.API] <- struct{}{}
		}
		return answer
	}, func(p *place, fake *modeltest.Server) {
		format := modeltest.Messages
		if !strings.HasPrefix(p.database, "sqlite:") {
			format = modeltest.Chat
		}
		task, starts := p.comesThrough("", func(n *node) {
			select {
			case <-begun[format]:
				n.cmd.Process.Kill() //nolint:errcheck // it may be gone
			case <-n.ended:
			}
		})
		root := p.ended(task)
		p.lostCallsCount(root, kikAsks)
		if starts != kikAsks+1 {
			p.Errorf("the server was started %d times, want once for each answer and once more", starts)
		}
		if asks := len(fake.Asks()); asks != 2*kikAsks || fake.Repeats() != kikAsks {
			p.Errorf("%d calls, %d of them again; want %d, half of them again", asks, fake.Repeats(), 2*kikAsks)
		}
	})
}

// lostCallsCount: what is recorded is what the models answered, and one call for each
// attempt that was lost, as much as was reserved for it.
func (p *place) lostCallsCount(root orchestrator.Delegation, lost int) {
	p.Helper()
	var heard, cut, times int64
	for _, e := range p.events(root.TaskID) {
		var used struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
			Lost   bool  `json:"lost"`
		}
		if e.Type != event.UsageRecorded {
			continue
		}
		if err := json.Unmarshal(e.Data, &used); err != nil {
			p.Fatal(err)
		}
		if used.Lost {
			cut, times = cut+used.Input+used.Output, times+1
		} else {
			heard += used.Input + used.Output
		}
	}
	if got := root.Usage.InputTokens + root.Usage.OutputTokens; times != int64(lost) || got != heard+cut || cut < times {
		p.Errorf("%d tokens are recorded; %d were answered, and %d lost calls count as %d", got, heard, times, cut)
	}
	if a := root.Work.Budget; a.Held.Tokens != 0 || a.Below.Tokens != 0 || a.Spent().Tokens != root.Usage.InputTokens+root.Usage.OutputTokens {
		p.Errorf("the account is %+v", a)
	}
}
