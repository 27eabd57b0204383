package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent/llm"
)

// P20: hooks are read with what holds where nothing is written, and a mistake is named where
// it stands; a change of one is a change of the rules.
func TestHooksAreRead(t *testing.T) {
	const head = "agents:\n  kik: {kind: llm, model: anthropic/m}\n  sh: {kind: command, command: [x]}\nproviders: {anthropic: {api_keys: [k]}}\nhooks:\n"
	dir := t.TempDir()
	c, err := Parse(filepath.Join(dir, "gatehouse.yaml"), []byte(head+"  - {name: a, at: before_call, command: [./a.sh, ./b], tools: [group:web], agents: [KIK], writable: [log], env: {API_KEY: hush}}\n  - {name: b, at: after_call, command: [b], timeout: 1m}\n"), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	want := []llm.HookProgram{{Name: "a", At: "before_call", Command: []string{filepath.Join(dir, "a.sh"), "./b"}, Agents: []string{"KIK"}, Tools: []string{"group:web"}, Timeout: 10 * time.Second,
		Env: map[string]string{"API_KEY": "hush"}, Writable: []string{filepath.Join(dir, "log")}}, {Name: "b", At: "after_call", Command: []string{"b"}, Timeout: time.Minute}}
	if !reflect.DeepEqual(c.LLM.Hooks, want) {
		t.Errorf("read %+v", c.LLM.Hooks)
	}
	rules := map[string]string{}
	for _, r := range c.Recorded() {
		if r.Rule {
			rules[r.Key] = r.Value
		}
	}
	if rules["hooks[a].command"] != "./a.sh, ./b" || rules["hooks[a].env.API_KEY"] != Hidden {
		t.Errorf("recorded %v", rules)
	}
	for text, want := range map[string]string{
		"  - {name: a, at: before_call}\n":      "6:5: hook a has no command",
		"  - {at: before_call, command: [x]}\n": "hook name \"\"",
		"  - {name: a, at: before_call, command: [x]}\n  - {name: a, at: after_call, command: [x]}\n": "7:12: hook name \"a\"",
		"  - {name: a, at: first, command: [x]}\n":                                                    `"first" is unknown here. Write before_call or after_call`,
		"  - {name: a, at: before_call, command: [x], timeout: 5m}\n":                                 "too long for a hook",
		"  - {name: a, at: before_call, command: [x], tools: [group:wep]}\n":                          `no tool or group "group:wep". Did you mean "group:web"?`,
		"  - {name: a, at: before_call, command: [x], agents: [sh]}\n":                                `"sh" is no agent of kind llm`,
		"  - {name: a, at: before_call, command: [x], agents: []}\n":                                  "6:54: hook a: agents is empty",
		"  - {name: a, at: before_call, command: [x], tools: []}\n":                                   "hook a: tools is empty",
		"  - {name: a, at: before_call, comand: [x]}\n":                                               "comand",
	} {
		if _, err := Parse("gatehouse.yaml", []byte(head+text), func(string) (string, bool) { return "", false }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v; want %q", text, err, want)
		}
	}
}
