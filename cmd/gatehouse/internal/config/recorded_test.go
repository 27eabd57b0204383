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
	if differ := parse(text, other).OtherRules()(recorded); len(differ) > 0 {
		t.Errorf("a node that has the program of a hook elsewhere has other rules: %s", differ)
	}
	for change, want := range map[string]string{ // the keys that differ, and none of what they are set to
		"listen: \"127.0.0.1:1\"→listen: \"127.0.0.1:2\"": "",
		"task: \"Rotate\"→task: \"Turn\"":                 "",
		"owner: ada}\nproviders→owner: ben}\nproviders":   "agents.kik.owner",
		"\"Rotate\", owner: ada→\"Rotate\", owner: ben":   "triggers[night.ly].owner",
		"core: [ada]→core: [ada, ben]":                    "groups.core",
		"core: [ada]→kern: [ada]":                         "groups.core, groups.kern",
		"need: 1→need: 2":                                 "approval.rules[a].need",
		"{name: a, when→{name: b, when":                   "approval.rules, approval.rules[a], approval.rules[b]",
		"four_eyes: true→four_eyes: false":                "approval.four_eyes",
		"timezone: UTC→timezone: Europe/Prague":           "server.timezone",
		"before_call→after_call":                          "hooks[guard].at",
	} {
		from, to, _ := strings.Cut(change, "→")
		if !strings.Contains(text, from) {
			t.Fatalf("the file has no %s", from)
		}
		if got := strings.Join(parse(strings.Replace(text, from, to, 1), vars).OtherRules()(recorded), ", "); got != want {
			t.Errorf("%s: other rules in %q, want %q", change, got, want)
		}
	}
}
