//go:build codingagents

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/web/wire"
)

// acpAgent is a real program of the Agent Client Protocol, as its preset has it.
type acpAgent struct {
	preset string
	shell  func(line string) modeltest.Call
	env    string            // further variables, in place of its key
	files  map[string]string // of its user
}

var acpAgents = []acpAgent{
	{
		preset: "claude-acp", env: `ANTHROPIC_API_KEY: "sk-any-key-at-all", ANTHROPIC_BASE_URL: "<service>"`,
		shell: func(line string) modeltest.Call {
			return modeltest.ToolCall("Bash", map[string]any{"command": line, "description": "as asked"})
		},
	},
	{
		preset: "codex-acp", env: `CODEX_API_KEY: "sk-any-key-at-all"`,
		shell: func(line string) modeltest.Call {
			return modeltest.ToolCall("exec_command", map[string]any{"cmd": line, "yield_time_ms": 30_000, "sandbox_permissions": "require_escalated", "justification": "as asked"})
		},
		files: map[string]string{".codex/config.toml": `model = "gpt-5"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "read-only"
[model_providers.fake]
name = "fake"
base_url = "<service>/v1"
wire_api = "responses"
env_key = "CODEX_API_KEY"
`},
	},
	{
		preset: "opencode-acp", env: `OPENCODE_CONFIG: "<home>/.config/opencode/gatehouse.json"`,
		shell: func(line string) modeltest.Call {
			return modeltest.ToolCall("bash", map[string]any{"command": line, "description": "as asked"})
		},
		files: map[string]string{".config/opencode/gatehouse.json": `{"model":"anthropic/claude-sonnet-4-5","provider":{"anthropic":{"options":{"baseURL":"<service>/v1","apiKey":"sk-any-key-at-all"}}}}`},
	},
}

// install makes a place with the program as an agent and a bot that asks bob, and serves it.
func (a acpAgent) install(t *testing.T, database string, script modeltest.Script) (*placetest.Gate, *placetest.Node) {
	t.Helper()
	bin := os.Getenv("GATEHOUSE_CODING_AGENTS")
	if bin == "" {
		t.Fatal("GATEHOUSE_CODING_AGENTS names no folder with the programs: run make coding-agents")
	}
	fake := modeltest.Start(func(asked modeltest.Ask) modeltest.Answer {
		if len(asked.Tools) == 0 { // a call beside the conversation, such as one for a title
			return modeltest.Say("A title")
		}
		return script(asked)
	})
	t.Cleanup(fake.Close)
	presets := command.Presets()
	preset := presets[slices.IndexFunc(presets, func(p command.Preset) bool { return p.Name == a.preset })]
	coder := strings.Replace(preset.YAML("app"), preset.Key+`: "${`+preset.Key+`}"`, a.env, 1)
	coder = strings.Replace(coder, `["`, `["`+bin+"/", 1) + "    timeout: 5m\n"
	fill := strings.NewReplacer("<service>", fake.Anthropic(), "<home>", "DIR").Replace
	g := placetest.NewGate(t, database, "engine: {workers: 2}\nrepositories:\n  app: {path: \"REPO\", branch: main}\nagents:\n"+fill(coder)+`
approval:
  actions: [{name: all, when: "true", need: 1}]
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`)
	for name, text := range a.files {
		path := filepath.Join(g.Dir, name)
		g.Must(os.MkdirAll(filepath.Dir(path), 0o700))
		g.Must(os.WriteFile(path, []byte(fill(text)), 0o600))
	}
	for _, dir := range []string{".claude", ".codex", ".config/opencode"} {
		g.Must(os.MkdirAll(filepath.Join(g.Dir, dir), 0o700))
	}
	n := g.Start(g.Config, "")
	g.Link(n, "bob", 1001)
	return g, n
}

// askedNext waits for the next request of a task.
func askedNext(p *placetest.Place, task string, before approval.Request) approval.Request {
	p.Helper()
	var r approval.Request
	p.Until("the next request", func() bool {
		for _, o := range p.Requests(task, approval.Pending) {
			if o.ID != before.ID {
				r = o
			}
		}
		return r.ID != ""
	})
	return r
}

// TestACodingAgentAsksOverItsProtocol: a shell command is asked on Telegram; the server is killed
// meanwhile, and the yes counts for the attempt after it. What is refused does not run, and the
// model reads why, and what a person said meanwhile is the next prompt. After "request changes"
// the work goes on.
func TestACodingAgentAsksOverItsProtocol(t *testing.T) {
	for _, a := range acpAgents {
		t.Run(a.preset, func(t *testing.T) {
			placetest.AnyPlace(t, func(t *testing.T, database string) { a.story(t, database) })
		})
	}
}

func (a acpAgent) story(t *testing.T, database string) {
	calls := func(text, line string) modeltest.Answer {
		return modeltest.Answer{Text: text, Calls: []modeltest.Call{a.shell(line)}}
	}
	g, n := a.install(t, database, func(asked modeltest.Ask) modeltest.Answer {
		body := string(asked.Body)
		has := func(words string) bool { return strings.Contains(body, words) }
		switch {
		case has("Louder, please.") && !has("echo louder"):
			return calls("I go on.", "echo louder >> yes.txt")
		case has("Louder, please."):
			return modeltest.Say("I went on.")
		case has("Sign it, please."):
			return modeltest.Say("All is done.")
		case has("not that one"):
			return modeltest.Say("Nearly done.")
		case has("no.txt"):
			return modeltest.Say("Refused.")
		case has("Your work was interrupted") && !has("I try again."):
			return calls("I try again.", "echo yes >> yes.txt")
		case !has("yes.txt"):
			return calls("I begin.", "echo yes >> yes.txt")
		}
		return calls("And another.", "echo no >> no.txt")
	})
	task := n.Send(a.preset, "app", "one")
	first := g.Asked(task)
	card := g.Shown(first)
	if first.Kind != approval.Action || !strings.Contains(card.Text, "echo yes >> yes.txt") {
		t.Fatalf("asked %s:\n%s", first.Kind, card.Text)
	}
	n.Kill()
	n = g.Start(g.Config, "")
	if said := g.Press(card, "Approve", "bob"); !strings.HasPrefix(said, "Approved.") {
		t.Fatalf("bob is told %q", said)
	}
	second := askedNext(g.Place, task, first)
	if text := second.Revision.Text; !strings.Contains(text, "echo no >> no.txt") {
		t.Fatalf("asked\n%s", text)
	}
	if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+g.Root(task).ID+"/messages", g.Asker, wire.Words{Text: "Sign it, please."}, nil); err != nil || code != http.StatusAccepted {
		t.Fatalf("told: %d %v", code, err)
	}
	if code, said := casts(n, g.Approver, second, map[string]any{"verdict": "reject", "comment": "not that one"}); code != http.StatusOK {
		t.Fatalf("rejected: %d %+v", code, said)
	}
	change := askedNext(g.Place, task, second)
	if files := change.Revision.Files; !change.IsPatch() || len(files) != 1 || files[0].Path != "yes.txt" || change.Revision.Added != 1 || change.Revision.Text != "All is done." {
		t.Fatalf("it changed %+v: %q", files, change.Revision.Text)
	}
	if code, said := casts(n, g.Approver, change, map[string]any{"verdict": "request_changes", "comment": "Louder, please."}); code != http.StatusOK {
		t.Fatalf("request changes: %d %+v", code, said)
	}
	louder := askedNext(g.Place, task, change)
	var card2 bottest.Message
	if card2 = g.Shown(louder); !strings.Contains(card2.Text, "echo louder") {
		t.Fatalf("asked\n%s", card2.Text)
	}
	if said := g.Press(card2, "Approve", "bob"); !strings.HasPrefix(said, "Approved.") {
		t.Fatalf("bob is told %q", said)
	}
	if root := n.Through(task); root.State != orchestrator.Completed || root.Result.Text != "I went on." {
		t.Errorf("it ended %s: %+v %+v", root.State, root.Result, root.Error)
	}
	if got := onMain(g.Place, "yes.txt"); got != "yes\nlouder" || onMain(g.Place, "no.txt") != "" {
		t.Errorf("landed %q", got)
	}
}
