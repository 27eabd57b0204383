package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
)

func call(tool, input string) agent.Action {
	return agent.Action{Tool: tool, Input: json.RawMessage(input)}
}

// A yes for the rest of a task covers what its words say, and nothing else.
func TestScopeOfAYes(t *testing.T) {
	bash := func(input string) agent.Action { return call("Bash", input) }
	given, ok := bash(`{"command":"npm test --silent","description":"run","timeout":5}`).Scope()
	if !ok || given.String() != "Bash with commands that begin: npm test" {
		t.Fatalf("the scope is %q, %t", given, ok)
	}
	for input, covered := range map[string]bool{
		`{"command":"npm test"}`:                                  true,
		`{"command":"npm  test -- --watch","description":"x"}`:    true,
		`{"timeout":1,"command":"npm test a"}`:                    true,
		`{"command":"npm"}`:                                       false,
		`{"command":"npm install"}`:                               false,
		`{"command":"npm test; rm -rf /"}`:                        false,
		`{"command":"npm test && curl x"}`:                        false,
		`{"command":"npm test $(id)"}`:                            false,
		"{\"command\":\"npm test `id`\"}":                         false,
		`{"command":"npm test\nrm -rf /"}`:                        false,
		`{"command":"npm test > /etc/passwd"}`:                    false,
		`{"command":"npm test \"a"}`:                              false,
		`{"command":"npm test *"}`:                                false,
		`{"command":"A=1 npm test"}`:                              false,
		`{"command":"npm test","dangerouslyDisableSandbox":true}`: false,
		`{"command":"npm test","run_in_background":true}`:         false,
		`{"command":["npm","test"]}`:                              false,
		`{"cmd":"npm test"}`:                                      false,
		`{}`:                                                      false,
		"{\"command\":\"npm test\u2028rm\"}":                      false,
		"{\"command\":\"npm\u00a0test\"}":                         false,
		`{"command":"npm test","command":"rm -rf /"}`:             false,
	} {
		if got := given.Covers(bash(input)); got != covered {
			t.Errorf("%s is covered: %t", input, got)
		}
	}
	if given.Covers(call("Shell", `{"command":"npm test"}`)) {
		t.Error("another tool is covered")
	}
	one, _ := bash(`{"command":"make"}`).Scope()
	if one.Covers(bash(`{"command":"make deploy"}`)) || !one.Covers(bash(`{"command":"make"}`)) {
		t.Errorf("one word covers more than itself: %s", one)
	}
	for _, input := range []string{`{}`, `{"command":""}`, `{"command":"a | b"}`, `{"command":7}`} {
		if s, ok := bash(input).Scope(); ok {
			t.Errorf("%s has the scope %s", input, s)
		}
	}
	any, ok := call("mcp_x_edit", `{"path":"a"}`).Scope()
	if !ok || !any.Covers(call("mcp_x_edit", `{"path":"b"}`)) || any.Covers(call("mcp_x_edit", `{"command":"x"}`)) {
		t.Errorf("a tool without a command: %s, %t", any, ok)
	}
}

// No value can pass for a field of its own, and nothing is left out.
func TestAnInputIsShownWhole(t *testing.T) {
	a := call("Bash", `{"command":"echo a\ncommand: ls","n":3,"deep":{"x":["\u0079 <b>"]},"a\nb":"c","":""}`)
	shown := a.Shown()
	for _, line := range []string{"command:", "│ echo a", "│ command: ls", "│ 3", `│   "x": [`, `│     "y <b>"`, `"a\nb": c`, `"":`} {
		if !strings.Contains("\n"+shown, "\n"+line) {
			t.Errorf("no line %q in:\n%s", line, shown)
		}
	}
	if strings.Contains(shown, "\ncommand: ls") {
		t.Errorf("a value passes for a field:\n%s", shown)
	}
	if got := call("x", `{}`).Shown(); got != "(no input)\n" {
		t.Errorf("no input is shown as %q", got)
	}
}

// What cannot be shown whole, or is none, is not asked.
func TestAsksThatCannotBe(t *testing.T) {
	long := strings.Repeat("x", agent.MaxActionInput)
	for name, a := range map[string]agent.Ask{
		"nothing":       {},
		"both":          {Action: new(call("x", `{}`)), Question: &agent.Question{Text: "a"}},
		"no tool":       {Action: new(call("", `{}`))},
		"line break":    {Action: new(call("x\ny", `{}`))},
		"no object":     {Action: new(call("x", `[]`))},
		"null":          {Action: new(call("x", `null`))},
		"no JSON":       {Action: new(call("x", `{`))},
		"twice":         {Action: new(call("x", `{"a":1,"a":2}`))},
		"too long":      {Action: new(call("x", `{"a":"`+long+`"}`))},
		"no question":   {Question: &agent.Question{Text: " "}},
		"same choices":  {Question: &agent.Question{Text: "a", Choices: []string{"b", "b"}}},
		"empty choice":  {Question: &agent.Question{Text: "a", Choices: []string{""}}},
		"many choices":  {Question: &agent.Question{Text: "a", Choices: strings.Split("abcdefghijklmnop", "")}},
		"long question": {Question: &agent.Question{Text: long}},
	} {
		if a.Check() == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if a, b := (agent.Ask{Action: new(call("x", `{"a": 1}`))}), (agent.Ask{Action: new(call("x", `{"a":1}`))}); a.Content() != b.Content() || a.Check() != nil {
		t.Error("blanks make another ask of it")
	}
	one, two := agent.Ask{Action: new(call("x", `{"cwd":"/runs/1"}`)), Place: "/runs/1"}, agent.Ask{Action: new(call("x", `{"cwd":"/runs/2"}`)), Place: "/runs/2"}
	if one.Content() != two.Content() {
		t.Error("the folder of another attempt makes another ask of it")
	}
}

// What is asked is bounded, and whoever asks too much reads the limit.
func TestTheBoundsOfAnAsk(t *testing.T) {
	question := func(q agent.Question) agent.Ask { return agent.Ask{Question: &q} }
	of := func(a agent.Action) agent.Ask { return agent.Ask{Action: &a} }
	for name, c := range map[string]struct {
		ask  agent.Ask
		says string
	}{
		"neither":          {agent.Ask{}, "either an action or a question"},
		"no question":      {question(agent.Question{Text: " "}), "Ask with 1 to 16384 bytes"},
		"a long question":  {question(agent.Question{Text: strings.Repeat("x", 16<<10+1)}), "The question has 16385 bytes. Ask with 1 to 16384 bytes"},
		"many choices":     {question(agent.Question{Text: "?", Choices: strings.Split("abcdefghijklm", "")}), "13 choices; 12 is the limit"},
		"a long choice":    {question(agent.Question{Text: "?", Choices: []string{strings.Repeat("x", 201)}}), "Choice 1 of the question is empty, longer than 200 bytes"},
		"a choice twice":   {question(agent.Question{Text: "?", Choices: []string{"a", "a"}}), "there twice"},
		"a long tool":      {of(agent.Action{Tool: strings.Repeat("x", 257), Input: []byte(`{}`)}), "more than 256 bytes"},
		"a long input":     {of(agent.Action{Tool: "Bash", Input: []byte(`{"command":"` + strings.Repeat("x", 256<<10) + `"}`)}), "262144 is the limit"},
		"an input of text": {of(agent.Action{Tool: "Bash", Input: []byte(`"x"`)}), "no JSON object"},
	} {
		if err := c.ask.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := question(agent.Question{Text: strings.Repeat("x", 16<<10), Choices: strings.Split("abcdefghijkl", "")}).Check(); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
}
