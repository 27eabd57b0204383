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

// Where a repository is and what is run on each change of it decide what a yes is to. Such a
// text often has a secret in a variable: it is recorded by a digest of what is written, so
// that a node which has it from elsewhere has the same rules.
func TestWhereAndWhatIsCheckedAreRules(t *testing.T) {
	const text = `repositories:
  app: {path: "https://git:${TOKEN}@example.com/${PLACE}.git", checks: ["make KEY=${KEY}", "go vet ./..."]}
  lib: {path: /srv/lib, checks: ["go vet ./..."]}
`
	vars := map[string]string{"TOKEN": "hush-hush", "PLACE": "hush-place", "KEY": "hush-key"}
	parse := func(text string, vars map[string]string) *Config {
		t.Helper()
		c, err := Parse("", []byte(text), func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	recorded := parse(text, vars).Recorded()
	seen := map[string]string{}
	for _, s := range recorded {
		if strings.Contains(s.Value, "hush") {
			t.Errorf("%s is recorded as %s", s.Key, s.Value)
		}
		if s.Rule && strings.HasPrefix(s.Key, "repositories.") {
			seen[s.Key] = s.Value
			if sealed := strings.HasPrefix(s.Key, "repositories.app.") && !strings.HasSuffix(s.Key, ".branch") && !strings.HasSuffix(s.Key, ".deliver"); sealed != s.Sealed {
				t.Errorf("%s: sealed %t as %s", s.Key, s.Sealed, s.Value)
			}
		}
	}
	if seen["repositories.lib.path"] != "/srv/lib" || seen["repositories.lib.checks"] != "go vet ./..." || !strings.HasPrefix(seen["repositories.app.path"], "sha256:") || !strings.HasPrefix(seen["repositories.app.checks"], "sha256:") {
		t.Errorf("recorded are %v", seen)
	}
	for _, v := range parse(text, vars).Values() {
		if strings.HasSuffix(v.Key, ".checks") && strings.Contains(v.Value, "hush") {
			t.Errorf("%s is shown as %s", v.Key, v.Value)
		}
	}
	if len(parse(text, map[string]string{"TOKEN": "other", "PLACE": "elsewhere", "KEY": "k"}).OtherRules()(recorded)) > 0 {
		t.Error("a node whose variables are others has other rules")
	}
	for change, same := range map[string]bool{
		"${PLACE}.git→${PLACE}2.git":          false,
		"${PLACE}→hush-place":                 false,
		"make KEY=${KEY}→make all KEY=${KEY}": false,
		`"make KEY=${KEY}", →`:                false,
		"path: /srv/lib→path: /srv/other":     false,
		`["go vet ./..."]}→["true"]}`:         false,
		`, checks: ["go vet ./..."]}→}`:       false,
	} {
		from, to, _ := strings.Cut(change, "→")
		if !strings.Contains(text, from) {
			t.Fatalf("the file has no %s", from)
		}
		if got := len(parse(strings.Replace(text, from, to, 1), vars).OtherRules()(recorded)) == 0; got != same {
			t.Errorf("%s: the same rules %v, want %v", change, got, same)
		}
	}
}
