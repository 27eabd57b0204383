//go:build codingagents

package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"
)

// The real Claude Code and Codex, without any account: they talk to a fake service of
// models that speaks their wire formats. `make coding-agents` installs the programs and
// names their folder in GATEHOUSE_CODING_AGENTS.

// codingTeam has a coding agent as coder, and a reviewer that reads the file.
const codingTeam = `
engine: {workers: 4}
repositories:
  app: {path: "REPO", branch: main}
approval:
  actions: [{name: shell, when: tool == "Bash", need: 1}]
agents:
  coder:
    kind: command
    repository: app
    delegates_to: [reviewer]
    timeout: 5m
    <coder>
  reviewer:
    kind: command
    repository: app
    analysis_only: true
    approval: auto
    env: {PLACE: MARK}
    command: [sh, -c, "printf 'The file says: '; cat hello.txt"]
`

// codingAgent is one of the programs.
type codingAgent struct {
	name    string
	command string // its part of the configuration, where <service> and <programs> are filled in
	key     string // the variable with its key, which is its part too
	state   string // its folder below HOME
	shell   func(line string) modeltest.Call
	said    string // of a person who is not signed in
}

// serverSecret is in the environment of the server alone.
const serverSecret = "a-secret-of-the-server-alone"

// codingAgents are configured as README.md says, but for the service. No state of theirs
// is there before their first run: HOME is a fresh folder.
var codingAgents = []codingAgent{
	{
		name: "claude", key: "ANTHROPIC_API_KEY", state: ".claude", said: "Not logged in",
		command: `command: ["<programs>/claude", "-p", "--permission-mode", "acceptEdits", "--allowedTools", "Write,Edit,Bash"]
    env: {PLACE: MARK, <key> CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", ANTHROPIC_BASE_URL: "<service>"}`,
		shell: func(line string) modeltest.Call {
			return modeltest.ToolCall("Bash", map[string]any{"command": line, "description": "as asked", "timeout": 600_000})
		},
	},
	{
		name: "codex", key: "OPENAI_API_KEY", state: ".codex", said: "OPENAI_API_KEY",
		command: `command: ["<programs>/codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "-c", "allow_login_shell=false",
      "-m", "gpt-5", "-c", "model_provider=fake", "-c", 'model_providers.fake={name="fake", base_url="<service>/v1", wire_api="responses", env_key="OPENAI_API_KEY"}', "-"]
    env: {PLACE: MARK, <key>}`,
		shell: func(line string) modeltest.Call {
			return modeltest.ToolCall("exec_command", map[string]any{"cmd": line, "yield_time_ms": 30_000})
		},
	},
}

// install makes a place where the program is coder, signed in or not, and serves it.
func (c codingAgent) install(t *testing.T, database string, signedIn bool, script modeltest.Script) (*placetest.Node, *modeltest.Server) {
	t.Helper()
	bin := os.Getenv("GATEHOUSE_CODING_AGENTS")
	if bin == "" {
		t.Fatal("GATEHOUSE_CODING_AGENTS names no folder with the programs: run make coding-agents")
	}
	fake := modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		if len(a.Tools) == 0 { // a call beside the conversation, such as one for a title
			return modeltest.Say("A title")
		}
		return script(a)
	})
	t.Cleanup(fake.Close)
	key := ""
	if signedIn {
		key = c.key + ": any-key,"
	}
	coder := strings.NewReplacer("<service>", fake.Anthropic(), "<programs>", bin, "<key>", key).Replace(c.command)
	p := placetest.New(t, database, strings.Replace(codingTeam, "<coder>", coder, 1))
	n, address := p.LaunchBy([]string{"env", "SERVER_SECRET=" + serverSecret}, p.Config, "")
	select {
	case n.URL = <-address:
	case <-n.Ended:
		t.Fatalf("the server ended with code %d instead of serving", n.Code())
	}
	return n, fake
}

// secretsIn names the secrets of the server that a text holds.
func secretsIn(p *placetest.Place, text string) []string {
	var found []string
	for what, secret := range map[string]string{"the secret": serverSecret, "the database": p.Database, "ann's token": p.Asker, "bob's token": p.Approver} {
		if strings.Contains(text, secret) {
			found = append(found, what)
		}
	}
	return found
}

func eachCodingAgent(t *testing.T, story func(t *testing.T, c codingAgent, database string)) {
	for _, c := range codingAgents {
		t.Run(c.name, func(t *testing.T) {
			placetest.Places(t, func(t *testing.T, database string) { story(t, c, database) })
		})
	}
}

// last is the result of the newest call of a tool, whatever its name.
func last(a modeltest.Ask) string {
	var text string
	for _, b := range a.Last().Blocks {
		if b.Type == agent.AnswerBlock {
			text += b.Text
		}
	}
	return text
}

// TestACodingAgentHandsOnAndLands: on a machine where it never ran the program changes a
// file, asks the reviewer, and its patch lands after a yes. Neither its environment nor
// that of the server's process, as far as it can read it, has a secret.
func TestACodingAgentHandsOnAndLands(t *testing.T) {
	eachCodingAgent(t, func(t *testing.T, c codingAgent, database string) {
		n, fake := c.install(t, database, true, func(a modeltest.Ask) modeltest.Answer {
			return []modeltest.Answer{
				{Text: "I look around.", Calls: []modeltest.Call{c.shell("env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; cat \"$HOME/one.yaml\"")}},
				{Text: "I write.", Calls: []modeltest.Call{c.shell("echo hello > hello.txt")}},
				{Text: "I ask.", Calls: []modeltest.Call{c.shell(`gatehouse delegate reviewer "Look at hello.txt"`)}},
				modeltest.Say("The reviewer said: " + last(a)),
			}[min(a.Turn, 4)-1]
		})
		task := n.Send("coder", "app", "once")
		n.Through(task)
		n.LandedOnce(task)
		root := n.Root(task)
		if root.State != orchestrator.Completed || !strings.Contains(root.Result.Text, "The file says: hello") {
			t.Errorf("%s is %s: %+v %+v", c.name, root.State, root.Result, root.Error)
		}
		if text := placetest.Git(t, n.Repo, "show", "main:hello.txt"); text != "hello" {
			t.Errorf("main has hello.txt with %q", text)
		}
		if got := placetest.Count(n.Events(task), event.Delegated, "coder"); got != 1 {
			t.Errorf("%d hand-overs, want 1", got)
		}
		looked := false
		for _, a := range fake.Asks() {
			told := a.System
			for _, m := range a.Messages {
				for _, b := range m.Blocks {
					told += "\n" + b.Text + string(b.Input)
				}
			}
			looked = looked || strings.Contains(told, "GATEHOUSE_DELEGATION_ID=")
			if found := secretsIn(n.Place, told); len(found) > 0 {
				t.Errorf("%s told the model %v", c.name, found)
			}
		}
		if !looked {
			t.Errorf("%s's environment was not looked at", c.name)
		}
		if st, err := os.Stat(filepath.Join(n.Dir, c.state)); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("its state folder is %v, %v", st, err)
		}
		n.Stop()
		n.NothingLeft(n.Data)
	})
}

// TestACodingAgentIsCancelled: what the program started ends with it. The aim is two
// seconds; a loaded machine may take longer, so the time is told and not judged.
func TestACodingAgentIsCancelled(t *testing.T) {
	eachCodingAgent(t, func(t *testing.T, c codingAgent, database string) {
		n, _ := c.install(t, database, true, func(modeltest.Ask) modeltest.Answer {
			return modeltest.Answer{Calls: []modeltest.Call{c.shell("(setsid sleep 1000 &) ; gatehouse context set signs here yes; sleep 1000")}}
		})
		task := n.Send("coder", "app", "once")
		n.Until("the program to be at work", func() bool {
			_, err := n.Store.Context("test").Get(t.Context(), "signs", "here")
			return err == nil
		})
		running := environments(n.Place)
		if len(running) < 3 {
			t.Errorf("%d processes are seen, want the program, its shell and what it left behind", len(running))
		}
		for _, env := range running {
			if found := secretsIn(n.Place, env); len(found) > 0 {
				t.Errorf("a process of %s was given %v", c.name, found)
			}
		}
		asked := time.Now()
		status, err := n.Call(http.MethodPost, "/api/v1/delegations/"+task+"/cancel", n.Asker, nil, nil)
		if err != nil || status != http.StatusOK {
			t.Fatalf("cancel: %d, %v", status, err)
		}
		n.Until("the end of its processes", func() bool { return n.Marked() == 0 })
		t.Logf("%s and %d processes were gone %s after the cancel (aim: 2s)", c.name, len(running), time.Since(asked).Round(time.Millisecond))
		if root := n.Root(task); root.State != orchestrator.Cancelled {
			t.Errorf("the task is %s", root.State)
		}
		n.NothingLeft(n.Data)
		n.Stop()
	})
}

// environments are the environments of the living processes that carry the place's mark.
func environments(p *placetest.Place) []string {
	p.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	p.Must(err)
	var found []string
	for _, path := range paths {
		// A process may go, or belong to somebody else.
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte(p.Mark)) {
			found = append(found, string(env))
		}
	}
	return found
}

// TestACodingAgentIsGivenALongTask: all of it reaches the model.
func TestACodingAgentIsGivenALongTask(t *testing.T) {
	const end = "and this is its end"
	text := strings.Repeat("A line of a long task.\n", 8<<10) + end // 184 kB
	for _, c := range codingAgents {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n, fake := c.install(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), true, func(modeltest.Ask) modeltest.Answer {
				return modeltest.Say("\x1b[32mRead\x1b[0m all of it.")
			})
			var s wire.Submitted
			status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "coder", Text: text, Repository: "app"}, &s)
			if err != nil || status != http.StatusAccepted {
				t.Fatalf("the task was answered with %d, %v", status, err)
			}
			if root := n.Through(s.ID); root.State != orchestrator.Completed || root.Result.Text != "Read all of it." {
				t.Errorf("the task is %s: %+v %+v", root.State, root.Result, root.Error)
			}
			for _, a := range fake.Asks() {
				if strings.Count(string(a.Body), "A line of a long task.") >= 8<<10 && bytes.Contains(a.Body, []byte(end)) {
					return
				}
			}
			t.Error("the model was never told the whole task")
		})
	}
}

// TestACodingAgentThatIsNotSignedInSaysSo: its own words are the failure that people read.
func TestACodingAgentThatIsNotSignedInSaysSo(t *testing.T) {
	for _, c := range codingAgents {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n, fake := c.install(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), false, func(modeltest.Ask) modeltest.Answer {
				return modeltest.Say("never")
			})
			root := n.Through(n.Send("coder", "app", "once"))
			if root.State != orchestrator.Failed || root.Error.Code != agent.CodeExit || !strings.Contains(root.Error.Message, c.said) {
				t.Fatalf("the task is %s: %+v", root.State, root.Error)
			}
			t.Logf("people read: %s", root.Error.Message)
			if !strings.Contains(n.Page(n.Browser("ann"), "/delegations/"+root.ID), c.said) {
				t.Error("the page does not say it")
			}
			if asks := fake.Asks(); len(asks) > 0 {
				t.Errorf("the model was asked %d times", len(asks))
			}
		})
	}
}

// Claude Code without ACP asks through the MCP server of its run, as its preset has it: a shell
// command waits for a yes, runs once, and what a person refuses does not run.
func TestACodingAgentAsksThroughTheGate(t *testing.T) {
	claude, presets := codingAgents[0], command.Presets()
	preset := presets[slices.IndexFunc(presets, func(p command.Preset) bool { return p.Name == "claude-asks" })]
	_, line, _ := strings.Cut(preset.YAML("app"), "    command: [\"claude\"")
	line, _, _ = strings.Cut(line, "\n")
	claude.command = `command: ["<programs>/claude"` + line + `
    env: {PLACE: MARK, <key> CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", ANTHROPIC_BASE_URL: "<service>"}`
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		n, _ := claude.install(t, database, true, func(a modeltest.Ask) modeltest.Answer {
			switch a.Turn {
			case 1:
				return modeltest.Answer{Calls: []modeltest.Call{claude.shell("echo yes >> answered.txt")}}
			case 2:
				return modeltest.Answer{Calls: []modeltest.Call{claude.shell("echo no >> refused.txt")}}
			}
			return modeltest.Say("It said: " + last(a))
		})
		root := n.Send("coder", "app", "one")
		first := n.Asked(root)
		if first.Action == nil || first.Action.Tool != "Bash" || first.Call().Command() != "echo yes >> answered.txt" {
			t.Fatalf("asked %+v", first.Action)
		}
		if code, err := n.Decide(first); err != nil || code != http.StatusOK {
			t.Fatalf("approved: %d, %v", code, err)
		}
		var second approval.Request
		n.Until("the second call", func() bool {
			second = n.Asked(root)
			return second.ID != first.ID
		})
		if code, said := casts(n, n.Approver, second, map[string]any{"verdict": "reject", "comment": "not that one"}); code != http.StatusOK {
			t.Fatalf("rejected: %d %+v", code, said)
		}
		var change approval.Request
		n.Until("the change", func() bool {
			change = n.Asked(root)
			return change.IsPatch()
		})
		if len(change.Revision.Files) != 1 || change.Revision.Files[0].Path != "answered.txt" || change.Revision.Added != 1 {
			t.Errorf("it changed %+v", change.Revision.Files)
		}
		if !strings.Contains(change.Revision.Text, "not that one") {
			t.Errorf("it was told %q", change.Revision.Text)
		}
	})
}
