package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"
)

// curious is a model that asks people in each of its turns, about whatever question says.
func curious(question func(turn int) modeltest.Answer) modeltest.Script {
	return func(a modeltest.Ask) modeltest.Answer { return question(a.Turn) }
}

// A model that asks people without end is a loop, whether it asks the same again and again or
// has a new question each time; so is one that wants a call that a rule denies.
func TestAModelThatAsksWithoutEndIsALoop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		question func(turn int) modeltest.Answer
		asked    int // people, at most
		says     string
	}{
		"the same question": {func(int) modeltest.Answer {
			return modeltest.Use("ask_person", map[string]any{"question": "Which colour?"})
		}, 30, "The model went in circles"},
		"a new question each time": {func(turn int) modeltest.Answer {
			return modeltest.Use("ask_person", map[string]any{"question": fmt.Sprintf("Which colour for %d?", turn)})
		}, 100, "asked people 100 times in one run, and 100 is the limit (engine.asks.per_run)"},
		"a call that a rule denies": {func(int) modeltest.Answer {
			return modeltest.Use("shared_context", map[string]any{"action": "get", "key": "x"})
		}, 0, "The model went in circles"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			placetest.AnyPlace(t, func(t *testing.T, database string) {
				p, s := newModels(t, database, "anthropic", "local", curious(c.question))
				defer s.Close()
				p.Config, _ = p.Configure("curious.yaml", strings.NewReplacer("OPENAI", s.OpenAI()).Replace(`
engine: {asks: {per_minute: 1000}, budget: {tokens: 100000000, usd: 1000}}
providers: {local: {base_url: "OPENAI"}}
agents: {kik: {kind: llm, model: local/small, prompt: "You ask.", max_turns: 200}}
approval: {actions: [{name: never, when: 'tool == "shared_context"', deny: true}]}
`))
				n := p.Start(p.Config, "")
				root := n.Send("kik", "", "one")
				asked := 0
				deadline := time.Now().Add(2 * time.Minute)
				for !p.Root(root).State.Ended() && time.Now().Before(deadline) {
					for _, r := range p.Requests(root, "pending") {
						if code, said := casts(n, p.Approver, r, map[string]any{"verdict": "answer", "comment": "blue"}); code != http.StatusOK {
							t.Fatalf("answered: %d %+v", code, said)
						}
						asked++
					}
				}
				d := p.Root(root)
				if d.State != orchestrator.Failed || d.Error.Code != "loop" || !strings.Contains(d.Error.Message, c.says) || asked > c.asked {
					t.Errorf("after %d answers it is %s: %+v", asked, d.State, d.Error)
				}
			})
		})
	}
}

// insistent is a program that asks in a loop, and leaves what it is told outside.
const insistent = `
engine: {asks: {per_minute: 3, open_per_task: 100}}
agents:
  coder: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null;
    for i in 1 2 3 4 5 6; do gatehouse permit --tool Bash --input "{\"command\":\"npm run $i\"}" >> DIR/said & done; wait; echo done']}
approval: {actions: [{name: shell, when: tool == "Bash", need: 1}]}
`

// A program that asks in a loop is refused from the configured rate on, in a sentence that says
// the limit; people have no more of it than that.
func TestAProgramThatAsksInALoopIsRefused(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, insistent)
		n := p.Start(p.Config, "")
		root := n.Send("coder", "", "one")
		said := func() string {
			text, err := os.ReadFile(filepath.Join(p.Dir, "said"))
			if err != nil {
				return ""
			}
			return string(text)
		}
		p.Until("three are refused", func() bool { return strings.Count(said(), "3 is the limit (engine.asks.per_minute)") == 3 })
		open := p.Requests(root, "pending")
		if len(open) != 3 || placetest.Count(p.Events(root), event.Requested, "") != 3 {
			t.Errorf("%d are asked", len(open))
		}
		for _, r := range open {
			if code, said := casts(n, p.Approver, r, map[string]any{"verdict": "approve"}); code != http.StatusOK {
				t.Errorf("approved: %d %+v", code, said)
			}
		}
		p.Until("the end", func() bool { return p.Root(root).State == orchestrator.Completed })
		if text := said(); strings.Count(text, `"behavior":"allow"`) != 3 || strings.Count(text, `"behavior":"deny"`) != 3 {
			t.Errorf("it was told %s", text)
		}
	})
}

// deniedTeam are a program, one over ACP and a model; a rule denies what each of them wants.
const deniedTeam = `
providers: {local: {base_url: "OPENAI"}}
agents:
  permits: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null;
    for i in 1 2 3 4 5; do gatehouse permit --tool Bash --input "{\"command\":\"make hello\"}"; done; true']}
  acp: {kind: command, protocol: acp, sandbox: off, command: [sh, DIR/agent.sh]}
  model: {kind: llm, model: local/small, prompt: "You work."}
engine: {asks: {per_minute: 3}}
approval: {actions: [{name: never, when: 'input.command contains "make hello" || tool == "shared_context"', deny: true}]}
`

// A call that a rule denies leaves an event, whoever wanted to make it; a loop of them leaves as
// many as the rate allows. It is on the page of the task, in Insights, and in the file.
func TestADeniedCallIsOnRecord(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		s := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
			if a.Turn == 1 {
				return modeltest.Use("shared_context", map[string]any{"action": "get", "key": "x"})
			}
			return modeltest.Say(a.Result("shared_context"))
		})
		defer s.Close()
		p := placetest.New(t, database, strings.ReplaceAll(deniedTeam, "OPENAI", s.OpenAI()))
		p.Must(os.WriteFile(filepath.Join(p.Dir, "agent.sh"), []byte(strings.ReplaceAll(acpScript, "DIR", p.Dir)), 0o600))
		n := p.Start(p.Config, "")
		ann := n.Browser("ann")
		for name, times := range map[string]int{"permits": 3, "acp": 3, "model": 1} { // the fake over ACP wants it until it is ended
			root := n.Through(n.Send(name, "", name))
			if got := placetest.Count(p.Events(root.TaskID), event.Denied, name); got != times {
				t.Errorf("%s ended %s with %d denied calls, want %d: %+v", name, root.State, got, times, root.Error)
			}
			if page := n.Page(ann, "/delegations/"+root.ID); !strings.Contains(page, "wants to make a call that the rule &#34;never&#34; denies") {
				t.Errorf("the page of %s does not say that a call was denied", name)
			}
		}
		if p.Exists("ran") {
			t.Error("what was denied ran")
		}
		p.Until("the figures", func() bool {
			page := n.Page(ann, "/insights")
			_, after, found := strings.Cut(page, "Calls of tools that were denied")
			return found && strings.Contains(after, "<code>never</code>") && strings.Contains(after, `<td class="num">7</td>`)
		})
		if file := n.Page(ann, "/insights/agent.csv"); !strings.Contains(file, ",denied_calls,answered\n") || !strings.Contains(file, ",1,0\npermits,") {
			t.Errorf("the file is %s", file)
		}
	})
}
