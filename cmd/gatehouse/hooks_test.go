package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"
)

// hookedTeam has hooks that refuse, record, hang, talk rubbish, fail and are missing.
const hookedTeam = `
engine: {workers: 4}
repositories:
  app: {path: "REPO", branch: main}
providers:
  local: {base_url: "BASE"}
agents:
  coder: {kind: llm, model: local/one, repository: app}
  free: {kind: llm, model: local/one, repository: app}
  helper: {kind: command, command: [sh, -c, "echo helped"]}
hooks:
  - {name: guard, at: before_call, tools: [write_file, group:delegation], agents: [coder], writable: [DIR/signs], env: {MY_TOKEN: "open sesame"}, command: [sh, -c, 'cat >> DIR/signs/before; echo >> DIR/signs/before; tail -1 DIR/signs/before | grep -q secret.txt && echo "{\"block\":\"secret.txt is not for agents\"}"; exit 0']}
  - {name: slow, at: before_call, tools: [search], timeout: 100ms, command: [sleep, "600"]}
  - {name: odd, at: before_call, tools: [list_files], command: [echo, "all fine, go on"]}
  - {name: typo, at: before_call, tools: [propose_patch], command: [echo, '{"blok":"no"}']}
  - {name: gone, at: before_call, tools: [run_checks], command: [./no-such-hook]}
  - {name: log, at: after_call, agents: [coder], writable: [DIR/signs], command: [sh, -c, 'cat >> DIR/signs/after; echo >> DIR/signs/after; echo "{\"note\":\"it is on record\"}"']}
  - {name: sick, at: after_call, tools: [write_file], command: [sh, -c, "echo it broke >&2; exit 7"]}
`

// hookLine is what a hook reads, as the README has it.
type hookLine struct {
	Hook, At, Agent string
	TaskID          string `json:"task_id"`
	DelegationID    string `json:"delegation_id"`
	Call            struct {
		ID, Tool string
		Input    map[string]any
	}
	Answer *struct {
		Text    string
		IsError bool `json:"is_error"`
		Blocked bool
	}
}

// lines reads what a hook wrote down, by the tool of the call.
func lines(p *placetest.Place, name string) map[string][]hookLine {
	p.Helper()
	all := map[string][]hookLine{}
	text, err := os.ReadFile(filepath.Join(p.Dir, "signs", name))
	p.Must(err)
	for line := range strings.Lines(string(text)) {
		var l hookLine
		p.Must(json.Unmarshal([]byte(line), &l))
		all[l.Call.Tool] = append(all[l.Call.Tool], l)
	}
	return all
}

// P20: programs that the configuration names stand around each call of a model. Before, one
// may refuse with a reason that the model reads, and one that hangs, fails, or prints what
// cannot be read refuses, too; after, it always runs, also for refused calls and for tools
// that do not exist, and what goes wrong there stops nothing. Work that waited for another
// agent is not asked about twice.
func TestHooksOfAnOperatorStandAroundEachCall(t *testing.T) {
	t.Parallel()
	tools := []string{"write_file", "search", "list_files", "propose_patch", "run_checks", "who_knows", "delegate_to_agent"}
	fake := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		if a.Turn > 1 {
			return modeltest.Say("done")
		}
		calls := []modeltest.Call{modeltest.ToolCall("write_file", map[string]any{"path": "secret.txt", "content": "x"})}
		for _, tool := range tools {
			calls = append(calls, modeltest.ToolCall(tool, map[string]any{"path": "ok.txt", "content": "x", "pattern": "x", "diff": "x", "agent": "helper", "task": "help"}))
		}
		return modeltest.Answer{Calls: calls}
	})
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), strings.ReplaceAll(hookedTeam, "BASE", fake.OpenAI()))
	p.Must(os.Mkdir(filepath.Join(p.Dir, "signs"), 0o700))
	n := p.Start(p.Config, "")
	task := n.Send("coder", "app", "hooked")
	if r := p.Asked(task); len(r.Revision.Files) != 1 || r.Revision.Files[0].Path != "ok.txt" {
		t.Errorf("the change is %+v", r.Revision.Files)
	}
	root := n.Through(task)
	if root.Result == nil || root.Result.Text != "done" {
		t.Fatalf("it is %s: %v", root.State, root.Error)
	}
	before, after := lines(p, "before"), lines(p, "after")
	if len(before["write_file"]) != 2 || len(before["delegate_to_agent"]) != 1 || before["delegate_to_agent"][0].Call.Input["agent"] != "helper" || len(before["search"])+len(before["list_files"])+len(before["who_knows"]) != 0 {
		t.Errorf("asked before: %+v", before)
	}
	for tool, want := range map[string]struct {
		blocked bool
		says    string
	}{"write_file": {true, "The hook guard says: secret.txt is not for agents"}, "search": {true, "the hook slow, which is asked first, failed"}, "list_files": {true, "the hook odd, which"},
		"propose_patch": {true, "the hook typo, which"}, "run_checks": {true, "the hook gone, which"}, "who_knows": {false, `no tool "who_knows"`}, "delegate_to_agent": {false, "helped"}} {
		if len(after[tool]) == 0 {
			t.Errorf("nothing after %s", tool)
			continue
		}
		l := after[tool][0]
		if l.Answer == nil || l.Answer.Blocked != want.blocked || !strings.Contains(l.Answer.Text, want.says) || l.Hook != "log" || l.At != "after_call" || l.Agent != "coder" || l.TaskID != task || l.DelegationID != root.ID || l.Call.ID == "" {
			t.Errorf("after %s: %+v %+v", tool, l, l.Answer)
		}
	}
	if w := after["write_file"]; len(w) != 2 || w[1].Answer.Blocked || w[1].Answer.IsError {
		t.Errorf("after the writes: %+v", w)
	}
	turns, err := p.Store.Turns(p.Context(), root.ID, 0)
	p.Must(err)
	for _, b := range turns[2].Message.Blocks {
		if !strings.HasSuffix(b.Text, "Note: it is on record") {
			t.Errorf("the model was told %q", b.Text)
		}
	}
	var shown strings.Builder
	for _, e := range p.Events(task) {
		if e.Type == event.Progress {
			shown.Write(e.Data)
		}
	}
	for _, words := range []string{"the hook slow failed before search: It ran for 100ms", "the hook odd failed before list_files: what it printed cannot be read", "the hook typo failed before propose_patch",
		"the hook gone failed before run_checks: start", "the hook sick failed after write_file: it ended with code 7. it broke"} {
		if !strings.Contains(shown.String(), words) {
			t.Errorf("people were not told %q: %s", words, shown.String())
		}
	}
	if got := n.Through(n.Send("free", "app", "free")); got.Result == nil || len(lines(p, "after")["delegate_to_agent"]) != 1 {
		t.Errorf("free is %s %v, after %v", got.State, got.Error, lines(p, "after"))
	}
	p.NothingLeft(p.Data)
}
