package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"

	"github.com/alecthomas/kong"
)

func grammar(t *testing.T) *kong.Application {
	t.Helper()
	var cli CLI
	k, err := kong.New(&cli, kong.Name("gatehouse"), grammarVars())
	if err != nil {
		t.Fatal(err)
	}
	return k.Model
}

func TestHelpOfEveryCommandHasTwoExamples(t *testing.T) {
	known := map[string]bool{"": true}
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		for _, child := range n.Children {
			walk(child)
		}
		path := strings.TrimSpace(console.PathOf(n))
		if n.Hidden {
			return
		}
		known[path] = true
		if examples()[path][0] == "" || examples()[path][1] == "" {
			t.Errorf("%q has no two examples", path)
		}
		for _, example := range examples()[path] {
			if path != "" && !strings.Contains(example, "gatehouse "+path) {
				t.Errorf("%q does not show %q", example, path)
			}
		}
	}
	walk(grammar(t).Node)
	for path := range examples() {
		if !known[path] {
			t.Errorf("there are examples for %q, which is no command", path)
		}
	}
}

func TestFlagsMayStandAnywhere(t *testing.T) {
	app := grammar(t)
	for _, c := range []struct{ give, want string }{
		{"--json status x", "status --json -- x"},
		{"status x --json", "status --json -- x"},
		{"--repo app send kik hello", "send --repo=app -- kik hello"},
		{"send kik hello --repo=app --wait", "send --repo=app --wait -- kik hello"},
		{"send kik -", "send -- kik -"},
		{"send kik -- --repo app", "send -- kik --repo app"},
		{"context set ns set value", "context set -- ns set value"},
		{"agents check a b", "agents check -- a b"},
		{"reject x --reason --no", "reject --reason=--no -- x"},
		{"complete send --re", "complete send --re"},
	} {
		got, err := console.Arrange(app, strings.Fields(c.give))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s becomes %q, %v; want %q", c.give, got, err, c.want)
		}
	}
	got, err := console.Arrange(app, []string{"send", "kik", "--help me, it is broken"})
	if err != nil || !slices.Equal(got, []string{"send", "--", "kik", "--help me, it is broken"}) {
		t.Errorf("a text that begins with dashes becomes %q, %v", got, err)
	}
}

func TestTheSchemaHasEveryKeyOfTheFile(t *testing.T) {
	b, err := json.Marshal(schemaOf(reflect.TypeFor[config.File](), ""))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := json.Marshal(structSchema(reflect.TypeFor[config.Step](), ""))
	if err != nil {
		t.Fatal(err)
	}
	all := string(b) + string(steps)
	// As the contract shows them; four of them stand at the deepest places.
	for _, key := range []string{"server", "public_url", "max_handoffs", "tiers", "cooldown", "protect", "credential", "api_keys",
		"delegates_to", "analysis_only", "goto", "parallel", "four_eyes", "remind", "when", "chats", "webhook_secret", "cron", "groups"} {
		if !strings.Contains(all, `"`+key+`":`) {
			t.Errorf("the schema does not have %s", key)
		}
	}
	for key, enum := range map[string]string{"cycle": `":{"enum":["strict","bounded"]`, "overlap": `":{"enum":["skip"`, "mode": `":{"enum":["poll"`, "careful": `":{"items":{"enum"`} {
		if !strings.Contains(all, `"`+key+enum) {
			t.Errorf("the schema does not say which words %s takes", key)
		}
	}
}

func TestVersionsOfGit(t *testing.T) {
	for version, old := range map[string]bool{"2.39.5": true, "2.43.7": false, "2.43.6": true, "2.50.1 (Apple Git-155)": false, "2.43.7.rc1": false, "3": false} {
		if got := slices.Compare(numbers(version), gitFixed) < 0; got != old {
			t.Errorf("%s is old: %v, want %v", version, got, old)
		}
	}
}
