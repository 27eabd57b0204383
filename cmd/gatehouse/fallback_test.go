package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/web/wire"
)

// fallbackTeam hands its work to a program that breaks, by the command line and in lines.
const fallbackTeam = `
engine: {workers: 1, handoffs: opt_in}
repositories:
  app: {path: "REPO", branch: main}
agents:
  lead:
    kind: command
    repository: app
    command: [sh, -c, 'echo once >> lead.txt; gatehouse handoff broken "the rest" 2> refused.txt; echo "went on with:"; cat']
  liner:
    kind: command
    protocol: jsonl
    command: [sh, -c, 'read -r task; case "$task" in *\"fallback\"*) printf "{\"type\":\"result\",\"text\":\"alone\",\"data\":%s}\n" "$task";; *) echo "{\"type\":\"handoff\",\"to\":\"broken\",\"text\":\"go\"}"; sleep 60;; esac']
  broken: {kind: command, command: [sh, -c, "echo it broke >&2; exit 3"]}
`

// H29: a program has ended when its hand-over fails. Where hand-overs are brought in task by
// task it gets its work back, reads why, and does it by itself.
func TestAProgramWhoseHandoverFailedWorksByItself(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), fallbackTeam)
	n := p.Start(p.Config, "")
	send := func(agent string, more ...string) orchestrator.Delegation {
		t.Helper()
		out, code := p.Cli(n, append([]string{"--json", "--token", n.Asker, "send", agent, "work", "--enable-handoffs"}, more...)...)
		var sent wire.Submitted
		if err := json.Unmarshal([]byte(out), &sent); err != nil || code != 0 {
			t.Fatalf("send %s: exit %d, %s", agent, code, out)
		}
		root := n.Through(sent.ID)
		if root.State != orchestrator.Completed || root.Result == nil {
			t.Fatalf("%s ended %s with %+v", agent, root.State, root.Error)
		}
		if tree := tree(p, root.TaskID); len(tree) != 2 || tree[1].State != orchestrator.Failed {
			t.Errorf("%s made %d delegations", agent, len(tree)-1)
		}
		return root
	}
	root := send("lead", "--repo", "app")
	for _, part := range []string{"went on with:\nwork\n\n# The hand-over failed\n\nYou handed this work to broken, which failed:\n\n> exit: ", "> it broke", "The work is yours again"} {
		if !strings.Contains(root.Result.Text, part) {
			t.Errorf("lead read %q, which lacks %q", root.Result.Text, part)
		}
	}
	if told := placetest.Git(t, p.Repo, "show", "main:refused.txt"); !strings.HasPrefix(told, "max_handoffs: ") || !strings.Contains(told, "the hand-over to broken failed, so lead works by itself now; lead → broken was refused") {
		t.Errorf("handing over once more it was told %q", told)
	}
	if lead := placetest.Git(t, p.Repo, "show", "main:lead.txt"); lead != "once\nonce" { // its files are as it left them
		t.Errorf("lead.txt is %q", lead)
	}
	if got := len(p.Requests(root.TaskID, approval.Landed)); got != 1 {
		t.Errorf("%d changes landed", got)
	}
	var line struct {
		Text     string `json:"text"`
		Fallback struct {
			To    string        `json:"to"`
			ID    string        `json:"id"`
			Error agent.Failure `json:"error"`
		} `json:"fallback"`
	}
	root = send("liner")
	if err := json.Unmarshal(root.Result.Data, &line); err != nil {
		t.Fatal(err)
	}
	if f := line.Fallback; line.Text != "work" || f.To != "broken" || f.ID != tree(p, root.TaskID)[1].ID || f.Error.Code != "exit" || !strings.Contains(f.Error.Message, "it broke") {
		t.Errorf("its first line was %s", root.Result.Data)
	}
}
