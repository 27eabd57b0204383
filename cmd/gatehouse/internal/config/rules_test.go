package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/web/wire"
)

// Rules are tried from a whole configuration, from a part of one and from a bare list;
// a mistake has its place in the file in each.
func TestRulesAreReadFromAWholeFileAndFromAPart(t *testing.T) {
	env := func(string) (string, bool) { return "", false }
	file := filepath.Join(t.TempDir(), "next.yaml")
	for name, c := range map[string]struct{ text, says string }{
		"a whole file":           {"server: {listen: ':1'}\ngroups: {core: [ann]}\napproval:\n  rules:\n    - {name: a, when: 'true', from: [core]}\n", ""},
		"its part":               {"approval:\n  rules:\n    - {name: a, when: 'true', from: [core]}\n", ""},
		"rules":                  {"rules:\n  - {name: a, when: 'true', from: [core]}\n", ""},
		"rules and groups":       {"groups: {core: [ann]}\nrules: [{name: a, when: 'true', from: [core]}]\n", ""},
		"a bare list":            {"- {name: a, when: 'true', from: [core], expires: 2h}\n", ""},
		"a typo in a list":       {"- name: a\n  when: any(patch.fils, true)\n", "next.yaml:2:19: rule \"a\": when: there is no patch.fils. Did you mean patch.files?"},
		"a status of before":     {"rules:\n  - {name: gone, when: \"any(patch.files, .status == 'deleted')\"}\n", "next.yaml:2:53: rule \"gone\": when: no file has the status \"deleted\": write \"removed\""},
		"a typo under rules":     {"rules:\n  - {name: a, wen: 'true'}\n", "next.yaml:2:15: unknown key `wen`. Did you mean `when`?"},
		"an unknown group":       {"groups: {cor: [ann]}\nrules: [{name: a, when: 'true', from: [core]}]\n", "next.yaml:2:39: rule \"a\": from: There is no group \"core\""},
		"both places":            {"approval: {}\nrules: []\n", "next.yaml:2:1: the key `approval` stands here twice"},
		"no length of time":      {"- {name: a, when: 'true', expires: soon}\n", "next.yaml:1:36: \"soon\" is no length of time"},
		"a whole file's mistake": {"server: {listne: ':1'}\n", "next.yaml:1:10: unknown key `listne`"},
		"a text":                 {"true\n", "next.yaml:1:1: expected keys with values here"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		tried, err := config.LoadRules(file, env)
		var rules []wire.PolicyRule
		if tried.Rules != nil {
			rules = *tried.Rules
		}
		switch {
		case c.says == "" && (err != nil || len(rules) != 1 || rules[0].Name != "a" || len(rules[0].From) != 1):
			t.Errorf("%s: %+v, %v", name, rules, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: want %q, got %v", name, c.says, err)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if tried, err := config.LoadRules(file, env); err != nil || tried.Rules == nil || len(*tried.Rules) != 0 {
		t.Errorf("an empty file: %v, %v", tried, err)
	}
	for text, says := range map[string]string{
		"approval:\n  actions: [{name: a, when: 'tool == \"Bash\"', from: [core]}]\n": "",
		"approval:\n  actions: [{name: a, when: 'tol == \"Bash\"'}]\n":                "next.yaml:2:",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tried, err := config.LoadRules(file, env)
		switch {
		case says == "" && (err != nil || tried.Rules != nil || tried.Actions == nil || len(*tried.Actions) != 1):
			t.Errorf("rules about calls alone: %+v, %v", tried, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("a typo in a rule about calls: %v", err)
		}
	}
}
