package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/wire"
)

// inquiryTeam is an admin with a model and a developer that reads the project once it may.
const inquiryTeam = `
engine: {workers: 2, lease: 10m}
repositories:
  app: {path: "REPO", branch: main}
providers:
  anthropic: {api_keys: [key], base_url: "ANTHROPIC"}
agents:
  ops: {kind: llm, role: admin, model: anthropic/small, prompt: "You look after the servers.", capabilities: [deploy]}
  shop: {kind: command, role: developer, command: [sh, -c, "until [ -e DIR/signs/read ]; do sleep 0.02; done; cat VERSION"], writable: ["DIR/signs"], repository: app, analysis_only: true, approval: auto, capabilities: [build]}
`

// inquiring is what ops says: it asks a developer, is done for now, and goes on when the
// answer comes: it notes the answer, and tells whoever asked.
func inquiring(a modeltest.Ask) modeltest.Answer {
	switch a.Turn {
	case 1:
		return modeltest.Use("spawn_agent", map[string]any{"capability": "developer", "task": "Which version does app run?"})
	case 2:
		return modeltest.Say("I have asked.")
	}
	version := ""
	for _, m := range a.Messages {
		if _, told, ok := strings.Cut(m.Text(), "Delegation result from shop for "); ok {
			_, version, _ = strings.Cut(told, ": ")
		}
	}
	if a.Turn == 3 {
		return modeltest.Use("shared_context", map[string]any{"action": "set", "key": "version", "value": version})
	}
	return modeltest.Say("app runs " + version + ".")
}

// TestAnAdminAsksADeveloperWhichVersionRuns is the worked case of the sources (A39a) step
// by step (A28): a task comes, the admin's model names the role that it asks (A20) and its
// turn ends; the developer acknowledges, works and completes; its result re-enters the
// admin's conversation by id (A25, A26), which goes on with it (A27). What it asks and what
// became of it can be read all the while (A11, A19, A29, A30).
func TestAnAdminAsksADeveloperWhichVersionRuns(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		models := modeltest.Start(inquiring)
		t.Cleanup(models.Close)
		p := placetest.New(t, database, strings.ReplaceAll(inquiryTeam, "ANTHROPIC", models.Anthropic()))
		p.Must(os.WriteFile(filepath.Join(p.Repo, "VERSION"), []byte("v2.3.1\n"), 0o600))
		placetest.Git(t, p.Repo, "add", "-A")
		placetest.Git(t, p.Repo, "commit", "-q", "-m", "version")
		p.Must(os.Mkdir(filepath.Join(p.Dir, "signs"), 0o700))
		n := p.Start(p.Config, "")
		for _, key := range []string{"first", "second"} {
			task := n.Send("ops", "", key)
			p.Until("ops to have ended its turn", func() bool { return p.Root(task).State == orchestrator.Waiting })
			saysOf(n, task, map[string]string{"from_agent": "", "to_agent": "ops", "status": "ack", "detail": "waiting"})
			p.Touch("signs/read")
			root := n.Through(task)
			p.Must(os.Remove(filepath.Join(p.Dir, "signs/read")))
			if root.Result == nil || root.Result.Text != "app runs v2.3.1." {
				t.Fatalf("ops is %s: %v, %+v", root.State, root.Error, root.Result)
			}
			asStepByStep(p, task, root)
			readsOf(n, task)
		}
		// A21, O13: each conversation begins with its own task alone.
		begun := slices.DeleteFunc(models.Asks(), func(a modeltest.Ask) bool { return a.Turn != 1 })
		if len(begun) != 2 || len(begun[1].Messages) != 1 || begun[1].Messages[0].Text() != "Do second" {
			t.Errorf("%d conversations began, the last with %+v", len(begun), begun[len(begun)-1].Messages)
		}
		p.NothingLeft(p.Data)
	})
}

// asStepByStep checks the history of an inquiry and what ops was told.
func asStepByStep(p *placetest.Place, taskID string, root orchestrator.Delegation) {
	p.Helper()
	var steps []string
	for _, e := range p.Events(taskID) {
		name := map[string]string{root.ID: "ops"}[e.DelegationID]
		if name == "" {
			name = "shop"
		}
		switch e.Type {
		case event.TaskCreated, event.Queued, event.Acknowledged, event.Delegated, event.Waiting, event.Announced, event.Completed:
			steps = append(steps, name+" "+string(e.Type))
		}
	}
	// ops waits when its turn is over, which may be before or after shop is picked up.
	waits := slices.Index(steps, "ops delegation.waiting")
	if waits < 0 {
		p.Fatalf("ops did not let go of its turn: %q", steps)
	}
	steps = slices.Delete(steps, waits, waits+1)
	want := []string{"ops task.created", "ops delegation.queued", "ops delegation.acknowledged", "ops delegation.delegated", "shop delegation.queued",
		"shop delegation.acknowledged", "shop delegation.completed", "ops delegation.acknowledged", "ops delegation.announced", "ops delegation.completed"}
	if !slices.Equal(steps, want) {
		p.Errorf("the steps are\n%q\nwant\n%q", steps, want)
	}
	tree, err := p.Store.Tree(p.Context(), taskID)
	p.Must(err)
	// A27: it went on with it before it told whoever asked.
	noted, err := p.Store.Context("gatehouse").Get(p.Context(), sharedctx.Board(taskID), "version")
	if p.Must(err); noted.Value != "v2.3.1" || noted.Agent != "ops" {
		p.Errorf("ops noted %+v", noted)
	}
	turns, err := p.Store.Turns(p.Context(), root.ID, 0)
	p.Must(err)
	told := regexp.MustCompile(`(?m)^Delegation result from shop for dlg_(\w{6,}): v2\.3\.1$`)
	for _, turn := range turns {
		if id := told.FindStringSubmatch(turn.Message.Text()); id != nil && slices.Equal(turn.Children, []string{tree[1].ID}) && strings.HasSuffix(tree[1].ID, id[1]) {
			return
		}
	}
	p.Errorf("ops was never told of %s: %+v", tree[1].ID, turns)
}

// readsOf checks what whoever asked can read of the agents and of the hand-over.
func readsOf(n *placetest.Node, taskID string) {
	n.Helper()
	var agents struct {
		Items []struct {
			Name, Role, Repository string
			Capabilities, Projects []string
			InstanceName           string `json:"instance_name"`
		}
	}
	if status, err := n.Call(http.MethodGet, "/api/v1/agents", n.Asker, nil, &agents); err != nil || status != http.StatusOK || len(agents.Items) != 2 {
		n.Fatalf("%d, %v: %+v", status, err, agents)
	}
	if got := fmt.Sprintf("%+v", agents.Items); got != "[{Name:ops Role:admin Repository: Capabilities:[deploy] Projects:[] InstanceName:ops} {Name:shop Role:developer Repository:app Capabilities:[build] Projects:[app] InstanceName:shop}]" {
		n.Errorf("the agents are %s", got)
	}
	// What was asked of shop is found by its name: its inbox.
	var inbox struct{ Items []wire.Delegation }
	if status, err := n.Call(http.MethodGet, "/api/v1/delegations?agent=shop", n.Asker, nil, &inbox); err != nil || status != http.StatusOK || len(inbox.Items) == 0 {
		n.Fatalf("%d, %v: nothing was asked of shop", status, err)
	}
	last := inbox.Items[0]
	if last.TaskID != taskID || last.From != "ops" || last.Text != "Which version does app run?" {
		n.Errorf("the newest of shop's is %+v", last)
	}
	cli := exec.Command("gatehouse", "wait", taskID, "--timeout", "1m") // A31: prints the result and exits
	cli.Env = append(os.Environ(), "GATEHOUSE_URL="+n.URL, "GATEHOUSE_TOKEN="+n.Asker, "LC_ALL=C.UTF-8", "GORACE="+placetest.NoSleep)
	if out, err := cli.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "✓ completed") || !strings.Contains(string(out), `"app runs v2.3.1."`) {
		n.Errorf("wait printed %q, %v", out, err)
	}
	saysOf(n, last.ID, map[string]string{"request_id": last.ID, "trace_id": taskID, "from_agent": "ops", "to_agent": "shop", "status": "complete", "detail": "completed", "body": "v2.3.1"})
	var d wire.Delegation
	if status, err := n.Call(http.MethodGet, "/delegation-status?id="+last.ID, n.Asker, nil, &d); err != nil || status != http.StatusOK || d.State != "completed" || d.Result == nil || d.Result.Text != "v2.3.1" {
		n.Errorf("%d, %v: its status is %+v", status, err, d)
	}
}

// saysOf checks the status of a delegation in the words of aiagentchat (A8–A10).
func saysOf(n *placetest.Node, id string, want map[string]string) {
	n.Helper()
	var got map[string]any
	status, err := n.Call(http.MethodGet, "/delegation-status?id="+id, n.Asker, nil, &got)
	if n.Must(err); status != http.StatusOK {
		n.Fatalf("delegation-status: %d", status)
	}
	for key, text := range want {
		if got[key] != text {
			n.Errorf("delegation-status says %s %v, want %q", key, got[key], text)
		}
	}
}
