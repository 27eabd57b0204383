package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"
)

// services runs a story with each wire format, on one of the databases each.
func services(t *testing.T, script modeltest.Script, story func(p *placetest.Place, fake *modeltest.Server)) {
	placetest.Places(t, func(t *testing.T, database string) {
		fake := modeltest.Start(script)
		t.Cleanup(fake.Close)
		config := placetest.KikTeamOf("anthropic", fake.Anthropic())
		if !strings.HasPrefix(database, "sqlite:") {
			config = placetest.KikTeamOf("openai", fake.OpenAI())
		}
		story(placetest.New(t, database, config), fake)
	})
}

// ended checks the end of the team's work: the verdict came up through every caller
// (K15), the greeting landed by one decision, and nobody was visited twice.
func ended(p *placetest.Place, task string) orchestrator.Delegation {
	p.Helper()
	root := p.Root(task)
	if root.State != orchestrator.Completed || root.Result == nil {
		p.Fatalf("KIK is %s: %+v", root.State, root.Error)
	}
	p.LandedOnce(task)
	// Every answer is repeated by who asked for it, so KIK's has all three (K15), and
	// what VajbCoder was told shows that the context was shared (K27).
	for _, want := range []string{"KIK heard:", "VajbCoder was told Say hello.", "It says hello.", "already in delegation chain", "KIK → VajbCoder → ReviewAgent → VajbCoder"} {
		if !strings.Contains(root.Result.Text, want) {
			p.Errorf("the answer lacks %q: %s", want, root.Result.Text)
		}
	}
	events := p.Events(task)
	if got := placetest.Count(events, event.Delegated, ""); got != 2 {
		p.Errorf("%d hand-overs, want 2", got)
	}
	if got := placetest.Count(events, event.DelegationRefused, "ReviewAgent"); got != 2 { // K14
		p.Errorf("ReviewAgent was refused %d times, want twice", got)
	}
	if got := placetest.Count(events, event.MessageCompleted, ""); got != placetest.KikAsks {
		p.Errorf("%d answers of models are on record, want %d", got, placetest.KikAsks)
	}
	if text := placetest.Git(p.T, p.Repo, "show", "main:hello.txt"); text != "hello" {
		p.Errorf("main has hello.txt with %q", text)
	}
	return root
}

// comesThrough starts the server again each time it dies until the task has ended, and
// says yes to what is asked. It returns how often the server was started.
func comesThrough(p *placetest.Place, point string, strike func(n *placetest.Node)) (task string, starts int) {
	p.Helper()
	for starts = 1; starts <= 60; starts++ {
		n := p.Start(p.Config, point)
		if again, err := n.Submit("KIK", "", "once"); err == nil { // the server may die before it answers
			if task != "" && again.ID != task {
				p.Fatalf("the key gives another task, %s, than before, %s", again.ID, task)
			}
			task = again.ID
		}
		if strike != nil {
			go strike(n)
		}
		over := false
		p.Until("the server's death or the task's end", func() bool {
			select {
			case <-n.Ended:
				return true
			default:
			}
			if task == "" {
				return false
			}
			for _, r := range p.Requests(task, approval.Pending) {
				n.Decide(r) //nolint:errcheck // the server may die before it answers
			}
			over = p.Root(task).State.Ended()
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
	services(t, placetest.KikWork, func(p *placetest.Place, fake *modeltest.Server) {
		task, starts := comesThrough(p, "turn stored#1", nil)
		ended(p, task)
		if starts < placetest.KikAsks {
			p.Errorf("the server was killed %d times only", starts-1)
		}
		if asks := len(fake.Asks()); asks != placetest.KikAsks || fake.Repeats() != 0 {
			p.Errorf("%d calls, %d of them again; want %d, none again", asks, fake.Repeats(), placetest.KikAsks)
		}
	})
}

// TestAServerKilledInEveryAnswer: the server dies in the middle of each answer. Only
// that one call is made again.
func TestAServerKilledInEveryAnswer(t *testing.T) {
	t.Parallel()
	begun := map[string]chan struct{}{modeltest.Messages: make(chan struct{}, placetest.KikAsks), modeltest.Chat: make(chan struct{}, placetest.KikAsks)}
	services(t, func(a modeltest.Ask) modeltest.Answer {
		answer := placetest.KikWork(a)
		if a.N == 1 {
			answer.Hang = 2 // the answer has begun, and never ends
			begun[a.API] <- struct{}{}
		}
		return answer
	}, func(p *placetest.Place, fake *modeltest.Server) {
		format := modeltest.Messages
		if !strings.HasPrefix(p.Database, "sqlite:") {
			format = modeltest.Chat
		}
		task, starts := comesThrough(p, "", func(n *placetest.Node) {
			select {
			case <-begun[format]:
				n.Cmd.Process.Kill() //nolint:errcheck // it may be gone
			case <-n.Ended:
			}
		})
		root := ended(p, task)
		lostCallsCount(p, root, placetest.KikAsks)
		if starts != placetest.KikAsks+1 {
			p.Errorf("the server was started %d times, want once for each answer and once more", starts)
		}
		if asks := len(fake.Asks()); asks != 2*placetest.KikAsks || fake.Repeats() != placetest.KikAsks {
			p.Errorf("%d calls, %d of them again; want %d, half of them again", asks, fake.Repeats(), 2*placetest.KikAsks)
		}
	})
}

// lostCallsCount: what is recorded is what the models answered, and one call for each
// attempt that was lost, as much as was reserved for it.
func lostCallsCount(p *placetest.Place, root orchestrator.Delegation, lost int) {
	p.Helper()
	var heard, cut, times int64
	for _, e := range p.Events(root.TaskID) {
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
