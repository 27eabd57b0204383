package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

const team = `server: {listen: 127.0.0.1:8080, public_url: http://localhost:8080, timezone: UTC}
database: sqlite:./gatehouse.db
repositories:
  app: {path: ./app, branch: main, checks: ["go vet ./..."], protect: ["secrets/**"]}
agents:
  kik:
    kind: workflow
    steps:
      - {id: change, agent: coder, task: "Do {{.Task}}"}
  coder:
    kind: command
    role: developer
    command: ["./coder.sh"]
    repository: app
    timeout: 15m
    delegates_to: [reviewer]
  reviewer: {kind: command, command: ["./review.sh"], analysis_only: true, approval: auto}
approval:
  four_eyes: false
  expires: 2h
  rules:
    - {name: docs, when: "all(patch.files, .path endsWith '.md')", need: 1}
groups: {maintainers: [ann]}
`

func TestATeamIsUnderstood(t *testing.T) {
	folder := t.TempDir()
	c, err := Parse(filepath.Join(folder, "gatehouse.yaml"), []byte(team), env())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Database, "sqlite:"+filepath.Join(folder, "gatehouse.db"); got != want {
		t.Errorf("database is %q, want it beside the file: %q", got, want)
	}
	if c.FourEyes || c.Expires != 2*time.Hour {
		t.Errorf("four eyes %v, expires %v; want false and 2h", c.FourEyes, c.Expires)
	}
	coder, ok := c.Engine.Agents.Get("CODER")
	if !ok || !coder.Restricted || coder.Timeout != 15*time.Minute || coder.Approval != "any" {
		t.Errorf("coder is %+v", coder)
	}
	if got := c.Engine.Repositories["app"].Source; got != filepath.Join(folder, "app") {
		t.Errorf("app is at %q", got)
	}
	s := c.Engine.Settings // K2, O9, H9: depth 3 and 5 hand-overs where nobody says otherwise
	if s.Workers != 8 || s.MaxDepth != 3 || s.MaxHandoffs != 5 || s.MaxAttempts != 3 || s.Lease != 30*time.Second || s.Cycle != "strict" {
		t.Errorf("defaults are %+v, want those of the contract", s)
	}
}

// A colon inside of a plain word of a flow list is no mapping (YAML 1.2, 7.3.3).
func TestToolGroupsAreWords(t *testing.T) {
	c, err := Parse("", []byte("agents: {a: {kind: llm, model: anthropic/x, tools: {allow: [group:delegation, group:context]}}}\n"), env())
	if err != nil || len(*c.File.Agents["a"].Tools.Allow) != 2 || len(c.Warnings) != 1 {
		t.Errorf("%v: %+v", err, c)
	}
}

func TestNothingIsAConfiguration(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n"} {
		c, err := Parse("", []byte(text), env())
		if err != nil || !c.FourEyes || c.Listen != "127.0.0.1:8080" {
			t.Errorf("%q gives %+v, %v", text, c, err)
		}
	}
}

func TestTheEnvironmentIsRead(t *testing.T) {
	text := "repositories: {app: {path: \"${ROOT}/app\", credential: \"${TOKEN}\"}}\nproviders: {openai: {base_url: \"http://h/$${X}\"}}\n"
	c, err := Parse("", []byte(text), env("ROOT", "/srv", "TOKEN", "t0"))
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Engine.Repositories["app"]; r.Source != "/srv/app" || r.Credential != "t0" {
		t.Errorf("app is %+v", r)
	}
	if got := c.File.Providers["openai"].BaseURL; got != "http://h/${X}" {
		t.Errorf("$${X} became %q", got)
	}
}

func TestMistakesNameThePlaceAndWhatToDo(t *testing.T) {
	agents := "agents:\n  a: {kind: command, command: [x]}\n"
	cases := []struct{ name, text, want string }{
		{"unknown key", "server: {}\naproval:\n  four_eyes: true\n", "2:1: unknown key `aproval`. Did you mean `approval`?"},
		{"unknown nested key", "engine:\n  worker: 3\n", "2:3: unknown key `worker`. Did you mean `workers`?"},
		{"wrong type", "engine:\n  workers: many\n", "2:12: `engine.workers`: expected a whole number here, found \"many\""},
		{"half a worker", "engine: {workers: 1.5}\n", "1:19: `engine.workers`: expected a whole number here, found \"1.5\""},
		{"wrong type in a list", "agents:\n  a:\n    command: [x, {y: z}]\n", "3:18: `agents.a.command[1]`: expected a text here, found keys with values"},
		{"tab", "engine:\n\tworkers: 3\n", "2:1: this line is indented with a tab. YAML takes only spaces there"},
		{"tab after spaces", "engine:\n  spawn:\n  \tchildren: 3\n", "3:3: this line is indented with a tab"},
		{"pattern of a repository", "repositories:\n  app:\n    path: x\n    protect: [docs/**, \"secrets/[\"]\n", "4:24: the pattern \"secrets/[\" cannot be read. Write a path as .gitignore has it"},
		{"pattern of an agent", "agents:\n  a:\n    kind: command\n    command: [x]\n    writes:\n      - ../other\n", "6:9: the pattern \"../other\" cannot be read"},
		{"limit that is no size", "agents: {a: {kind: command, command: [x], limits: {memory: much}}}\n", "1:60: memory: \"much\" is no size. Write a number with K, M, G or T, as in 2G"},
		{"limit that nothing starts with", "engine: {agent_defaults: {limits: {memory: 2K}}}\n", "1:44: memory: 2K is out of range. Write 16 MB or more"},
		{"half a processor", "agents: {a: {kind: command, command: [x], limits: {cpu: 0.5}}}\n", "`agents.a.limits.cpu`: expected a whole number"},
		{"no process", "agents: {a: {kind: command, command: [x], limits: {processes: -1}}}\n", "processes: -1 is out of range"},
		{"container", "agents: {a: {kind: command, command: [x], sandbox: container}}\n", "1:52: sandbox: container is not built. Write auto, required or off"},
		{"container as default", "engine: {agent_defaults: {sandbox: container}}\n", "1:36: sandbox: container is not built"},
		{"network of a model", "providers: {p: {kind: openai}}\nagents: {a: {kind: workflow, network: off, steps: [{id: s, agent: a}]}}\n", "network: off is for agents of kind command"},
		{"list for a map", "agents:\n  - kik\n", "expected"},
		{"missing variable", "database: \"${NOWHERE}\"\n", "1:11: the environment variable NOWHERE is not set"},
		{"duplicate key", "data: a\ndata: b\n", "2:1:"},
		{"syntax", "server: {listen: \n", ":"},
		{"two documents", "data: a\n---\ndata: b\n", "second document"},
		{"bad duration", "engine: {lease: soon}\n", "1:17: \"soon\" is no length of time"},
		{"negative duration", "engine: {lease: -3s}\n", "is no length of time"},
		{"zone", "server: {timezone: Mars/Base}\n", "no time zone \"Mars/Base\""},
		{"address", "server: {listen: nowhere}\n", "no address to listen on"},
		{"public url", "server: {public_url: \"ftp://x\"}\n", "no address of a site"},
		{"database", "database: mysql://x\n", "1:11: the database must begin with sqlite: or postgres://"},
		{"cycle setting", "engine: {cycle: loose}\n", "Write strict or bounded"},
		{"workers", "engine: {workers: -2}\n", "out of range"},
		{"unknown kind", "agents: {a: {kind: robot}}\n", "1:20: agent a: kind \"robot\" is unknown"},
		{"no command", "agents: {a: {kind: command}}\n", "agent a has no command"},
		{"auto without analysis", "agents: {a: {kind: command, command: [x], approval: auto}}\n", "1:53: agent a: approval: auto is only for"},
		{"delegates to nobody", agents + "  b: {kind: command, command: [x], delegates_to: [a, aa]}\n", "3:54: agent b may hand to \"aa\", which is no agent. Did you mean \"a\"?"},
		{"unknown repository", "agents: {a: {kind: command, command: [x], repository: web}}\n", "works on \"web\", which is no repository"},
		{"workflow to nobody", "agents:\n  w:\n    kind: workflow\n    steps:\n      - {id: s, agent: nobody, task: t}\n", "5:"},
		{"workflow reaches itself", "agents:\n  w: {kind: workflow, steps: [{id: s, agent: v, task: t}]}\n  v: {kind: workflow, steps: [{id: s, agent: w, task: t}]}\n", "w"},
		{"no steps", "agents: {w: {kind: workflow}}\n", "workflow without steps"},
		{"look-alike agents", "agents:\n  coder: {kind: command, command: [x]}\n  cоder: {kind: command, command: [x]}\n", "cannot be told apart"},
		{"rule that does not compile", "approval:\n  rules:\n    - {name: r, when: \"patch.lnes < 3\", need: 1}\n", "3:"},
		{"rule from nobody", "approval:\n  rules:\n    - {name: r, when: \"true\", need: 1, from: [ghosts]}\n", "ghosts"},
		{"rule about hand-overs", "approval:\n  handovers:\n    - {name: r, when: \"texts contains 'a'\"}\n", "3:24: rule \"r\": when: unknown name texts. Did you mean text?"},
		{"trial of a rule about hand-overs", "approval:\n  handovers:\n    - {name: r, when: \"true\", shadow: true}\n", "unknown key `shadow`"},
		{"repository without path", "repositories: {app: {branch: main}}\n", "has no path"},
		{"deliver", "repositories: {app: {path: x, deliver: mail}}\n", "Write merge or branch"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("gatehouse.yaml", []byte(c.text), env())
			if err == nil {
				t.Fatalf("was taken:\n%s", c.text)
			}
			if !strings.HasPrefix(err.Error(), "gatehouse.yaml:") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %s\nwant …%s…", err, c.want)
			}
		})
	}
}

func TestAMissingFileIsOnlyFineWhenNobodyAskedForIt(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Load("", env()); err != nil {
		t.Errorf("no file: %v", err)
	}
	if _, err := Load("other.yaml", env()); err == nil {
		t.Error("a named file that is missing was taken")
	}
	if entries, _ := os.ReadDir("."); len(entries) != 0 {
		t.Errorf("loading created %v", entries)
	}
}
