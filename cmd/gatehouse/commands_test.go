package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/modeltest"
)

// commandTeam has one model that may run commands, one that may not, and one whose analysis
// is allowed to in vain.
const commandTeam = `
engine: {workers: 4}
repositories:
  app: {path: "REPO", branch: main}
providers:
  local: {base_url: "BASE"}
agents:
  builder: {kind: llm, model: local/one, repository: app, limits: {processes: 20}, env: {TEST_MARK: MARK, DEPLOY_TOKEN: "open sesame 42"}, tools: {allow: [group:fs, group:exec]}}
  offline: {kind: llm, model: local/one, repository: app, network: off, tools: {allow: [run_command]}}
  planner: {kind: llm, model: local/one, repository: app}
  analyst: {kind: llm, model: local/one, repository: app, analysis_only: true, tools: {allow: [group:all, group:exec]}}
`

// builds plays the models: the task's text says what they run, one line each.
func builds(dir string, shown *sync.Map) modeltest.Script {
	return func(a modeltest.Ask) modeltest.Answer {
		for _, who := range []string{"builder", "offline", "planner", "analyst"} {
			if placetest.Speaks(a, who) {
				shown.Store(who, names(a))
			}
		}
		run := func(line string) modeltest.Call {
			return modeltest.ToolCall("run_command", map[string]any{"command": line, "timeout_seconds": 60})
		}
		switch {
		case a.Turn > 1:
			var said []string
			for _, b := range a.Last().Blocks {
				said = append(said, b.Text)
			}
			if len(said) > 1 {
				shown.Store("told", said)
			}
			return modeltest.Say(strings.Join(said, "\n--\n"))
		case strings.Contains(a.Conversation, "Do build"):
			return modeltest.Answer{Calls: []modeltest.Call{
				run("pwd; echo built > built.txt; (echo x > " + dir + "/outside) 2> /dev/null || echo no"),
				run(`echo "token=$DEPLOY_TOKEN server=$GATEHOUSE_TOKEN"; printf ghp_%036d 7; echo; (setsid sleep 600 &); sleep 600 & exit 3`),
				run("seq 1 100000"), modeltest.ToolCall("run_command", map[string]any{"command": "echo begun; sleep 600", "timeout_seconds": 1}),
				run("for i in $(seq 40); do sleep 600 & done; wait"), run("cat built.txt")}}
		case strings.Contains(a.Conversation, "Do hang"):
			return modeltest.Answer{Calls: []modeltest.Call{run("touch waits; sleep 600")}}
		}
		return modeltest.Answer{Calls: []modeltest.Call{run("echo ran")}}
	}
}

// P22: a model whose configuration allows it runs commands in its checkout: confined,
// limited in time and output, without secrets, and with nothing left behind. Others are not
// shown the tool, and nothing else gives it.
func TestAModelRunsCommandsWhereItIsAllowed(t *testing.T) {
	t.Parallel()
	var shown sync.Map
	dir := t.TempDir()
	fake := modeltest.Start(builds(dir, &shown))
	t.Cleanup(fake.Close)
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), strings.ReplaceAll(commandTeam, "BASE", fake.OpenAI()))
	n := p.Start(p.Config, "")

	task := n.Send("builder", "app", "build")
	r := p.Asked(task)
	if got := r.Revision.Files; len(got) != 1 || got[0].Path != "built.txt" {
		t.Errorf("the change is %+v", got)
	}
	root := n.Through(task)
	told, _ := shown.Load("told")
	said, ok := told.([]string)
	if !ok || len(said) != 6 {
		t.Fatalf("the model was told %q", said)
	}
	for i, want := range [][]string{{"Exit code 0.", "checkout"}, {"Exit code 3.", "token=[secret] server=\n", "ghp_…[masked]"}, {"The end of what it printed:", "\n100000"},
		{"It ran for 1s, which is its limit, and was ended.", "begun"}, {"processes at once; 20 are allowed, and was ended."}, {"Exit code 0.\n\nbuilt"}} {
		for _, words := range want {
			if !strings.Contains(said[i], words) {
				t.Errorf("call %d was answered %.400q; want %q", i+1, said[i], words)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "outside")); root.Work.Sandbox != "none" && (!strings.HasSuffix(said[0], "no") || err == nil) {
		t.Errorf("in %s it reached what it may not: %q", root.Work.Sandbox, said[0])
	}
	if root.Work.Sandbox == agent.NoProgram || r.Revision.Sandbox != root.Work.Sandbox || root.Work.Confined == nil || root.Work.Confined.Limits.Processes != 20 {
		t.Errorf("the request says %q, the run %q %+v", r.Revision.Sandbox, root.Work.Sandbox, root.Work.Confined)
	}
	if len(said[2]) > 30<<10 {
		t.Errorf("the model was told %d bytes", len(said[2]))
	}

	for who, want := range map[string]string{"planner": `There is no tool "run_command"`, "analyst": "action_refused: The rule analysis-only refuses run_command", "offline": "Exit code 0.\n\nran"} {
		got := n.Through(n.Send(who, "app", who))
		if got.Result == nil || !strings.HasPrefix(strings.TrimPrefix(got.Result.Text, "Error: "), want) {
			t.Errorf("%s: %s %v %+v", who, got.State, got.Error, got.Result)
		}
		if c := got.Work.Confined; who == "offline" && (c == nil || c.Network != agent.NetworkOff) {
			t.Errorf("offline ran with %+v", c)
		}
		if got, _ := shown.Load(who); slices.Contains(got.([]string), "run_command") != (who == "offline") {
			t.Errorf("%s was shown %v", who, got)
		}
	}

	task = n.Send("builder", "app", "hang")
	p.Until("the command to run", func() bool { return p.Marked() > 0 })
	if status, err := n.Call(http.MethodPost, "/api/v1/delegations/"+p.Root(task).ID+"/cancel", n.Asker, map[string]any{}, nil); err != nil || status != http.StatusOK {
		t.Fatalf("cancel: %d, %v", status, err)
	}
	if root := n.Through(task); root.State != orchestrator.Cancelled || len(p.Requests(task, approval.Pending)) > 0 {
		t.Errorf("it is %s", root.State)
	}
	p.NothingLeft(p.Data)
}
