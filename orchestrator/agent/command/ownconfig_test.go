package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// A program that takes rights from its user's settings has a copy of its own in each run, so that
// a call of it changes them for no other; one that asks first keeps only which model answers.
func TestSettingsOfARunEndWithIt(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	own := filepath.Join(home, ".config", "opencode", "opencode.json")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	const settings = `{"model":"anthropic/x","provider":{"anthropic":{"options":{"apiKey":"k"}}},"permission":{"bash":"allow"},"plugin":["evil"]}`
	write(t, own, settings, 0o600)
	program := filepath.Join(bin, "opencode")
	write(t, program, "#!/bin/sh\ncat \"$XDG_CONFIG_HOME/opencode/opencode.json\"; echo '{}' > \"$XDG_CONFIG_HOME/opencode/opencode.json\" || true\n", 0o700)
	job := func(change func(*agent.Job)) agent.Job {
		return shell(t, "", func(j *agent.Job) { j.Agent.Command, j.Agent.Env["HOME"] = []string{program}, home }, change)
	}
	for range 2 { // what the first wrote is not there for the second
		if res, err := run(t, job(func(*agent.Job) {}), agenttest.NewHost()); err != nil || res.Text != settings {
			t.Errorf("it read %q, %v", res.Text, err)
		}
	}
	if mustRead(t, own) != settings {
		t.Error("the user's own settings changed")
	}
	if state := stateOf("opencode", home); len(state) != 2 || strings.Contains(strings.Join(state, " "), ".config") {
		t.Errorf("it may write %v", state)
	}

	asking := func(j *agent.Job) { j.Agent.Protocol = agent.ACP }
	p, err := testRunner(t).prepare(t.Context(), job(asking))
	if err != nil {
		t.Fatal(err)
	}
	folder := ""
	for _, pair := range p.order.Env {
		if value, ok := strings.CutPrefix(pair, "XDG_CONFIG_HOME="); ok {
			folder = value
		}
	}
	if got := mustRead(t, filepath.Join(folder, "opencode", "opencode.json")); got != `{"model":"anthropic/x","provider":{"anthropic":{"options":{"apiKey":"k"}}}}` {
		t.Errorf("one that asks first reads %s", got)
	}
	write(t, own, "{ // with words\n}", 0o600)
	mustNot(t, job(asking), agenttest.NewHost(), agent.CodeStart, "Write them as JSON without comments")
	given := func(j *agent.Job) { j.Agent.Env["XDG_CONFIG_HOME"] = filepath.Join(home, ".config") }
	if res, err := run(t, job(given), agenttest.NewHost()); err != nil || res.Text != "{ // with words\n}" {
		t.Errorf("with a folder of the operator's it read %q, %v", res.Text, err)
	}
}
