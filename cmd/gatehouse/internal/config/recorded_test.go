package config

import (
	"maps"
	"strings"
	"testing"
)

// Nodes compare their rules with those that were recorded last: whatever says who may do
// what, or who must say yes, makes them others, and what is each node's own does not.
func TestWhichSettingsAreRules(t *testing.T) {
	const text = `server: {timezone: UTC, listen: "127.0.0.1:1"}
agents:
  kik: {kind: llm, model: anthropic/m, owner: ada}
providers: {anthropic: {api_keys: [k]}}
groups: {core: [ada]}
approval:
  four_eyes: true
  rules:
    - {name: a, when: "true", need: 1}
triggers:
  - {name: night.ly, kind: schedule, cron: "0 0 1 1 *", agent: kik, task: "Rotate", owner: ada}
hooks:
  - {name: guard, at: before_call, command: ["${GUARD}", "${TOKEN}"]}
`
	vars := map[string]string{"GUARD": "/opt/guard", "TOKEN": "hush-hush-hush"}
	parse := func(text string, vars map[string]string) *Config {
		t.Helper()
		c, err := Parse("", []byte(text), func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	recorded := parse(text, vars).Recorded()
	for _, s := range recorded {
		if strings.Contains(s.Value, "hush") {
			t.Errorf("%s is recorded as %s", s.Key, s.Value)
		}
	}
	other := maps.Clone(vars)
	other["GUARD"] = "/usr/local/guard"
	if !parse(text, other).SameRules()(recorded) {
		t.Error("a node that has the program of a hook elsewhere has other rules")
	}
	for change, same := range map[string]bool{
		"listen: \"127.0.0.1:1\"→listen: \"127.0.0.1:2\"": true,
		"task: \"Rotate\"→task: \"Turn\"":                 true,
		"owner: ada}\nproviders→owner: ben}\nproviders":   false,
		"\"Rotate\", owner: ada→\"Rotate\", owner: ben":   false,
		"core: [ada]→core: [ada, ben]":                    false,
		"need: 1→need: 2":                                 false,
		"four_eyes: true→four_eyes: false":                false,
		"timezone: UTC→timezone: Europe/Prague":           false,
		"before_call→after_call":                          false,
	} {
		from, to, _ := strings.Cut(change, "→")
		if !strings.Contains(text, from) {
			t.Fatalf("the file has no %s", from)
		}
		if got := parse(strings.Replace(text, from, to, 1), vars).SameRules()(recorded); got != same {
			t.Errorf("%s: the same rules %v, want %v", change, got, same)
		}
	}
}
