package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command"
)

// What the page offers to paste is understood as it was meant, key and all; without the
// key's variable the message names it.
func TestWhatThePageOffersToPasteIsUnderstood(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := "repositories: {\"true\": {path: " + t.TempDir() + ", branch: main}}\nagents:\n"
	var keys []string
	presets := command.Presets()
	for _, p := range presets {
		text += p.YAML("true")
		keys = append(keys, p.Key, "secret")
		line := p.YAML("app")
		line = line[strings.Index(line, "    command:"):strings.Index(line, "    env:")]
		if p.Played && !strings.Contains(string(readme), line) {
			t.Errorf("the README has another command for %s than %s", p.Title, line)
		}
	}
	c, err := Parse("", []byte(text), env(keys...))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	specs := c.Engine.Agents.All()
	if len(specs) != 11 || len(presets) != 11 {
		t.Fatalf("%d agents of %d presets", len(specs), len(presets))
	}
	for _, p := range presets {
		s, ok := c.Engine.Agents.Get(p.Name)
		if !ok || s.Kind != agent.Command || s.Protocol != p.Protocol || s.Repository != "true" || !slices.Equal(s.Command, p.Command) || s.Env[p.Key] != "secret" || len(s.Env) != 1+len(p.Env) {
			t.Errorf("%s is %+v", p.Name, s)
		}
	}
	if _, err := Parse("", []byte(text), env()); err == nil || !strings.Contains(err.Error(), "GEMINI_API_KEY") {
		t.Errorf("without keys: %v", err)
	}
}
