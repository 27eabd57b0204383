package main

import (
	"bytes"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/cli"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// stopTeam is one worker, an agent that does not end by itself, and another one.
const stopTeam = `
engine: {workers: 1, lease: 10m, inbox: 2}
agents:
  slow: {kind: command, sandbox: off, env: {PLACE: MARK}, command: [sleep, "600"]}
  other: {kind: command, sandbox: off, env: {PLACE: MARK}, command: [sleep, "600"]}
`

// countedAt finds in the page when it counted.
var countedAt = regexp.MustCompile(`name="until" value="([^"]+)"`)

// A35: a full inbox is seen on the agent's page, by the CLI and by Prometheus. P37: an admin
// stops one agent's work from the shell and everything from the page, each with the count
// before and the reason after; nobody else may.
func TestAnAdminStopsEverything(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), stopTeam)
	n := p.Start(p.Config, "")
	operator := p.Person("dora", "operator")
	admin, dora := n.Browser("ann"), n.Browser("dora")
	tasks := []string{n.Send("slow", "", "1")}
	stands(p, tasks[0], orchestrator.Running)
	for i, agent := range []string{"slow", "slow", "other"} {
		tasks = append(tasks, n.Send(agent, "", string(rune('2'+i))))
	}

	// How full it is.
	out, _ := p.Cli(n, "--token", p.Asker, "agents")
	if !strings.Contains(out, "inbox 2 of 2") || !strings.Contains(out, "inbox 1 of 2") {
		t.Errorf("agents:\n%s", out)
	}
	if out, _ = p.Cli(n, "--token", p.Asker, "status", tasks[1]); !strings.Contains(out, "inbox   2 of 2 wait for slow (100 %)") {
		t.Errorf("status:\n%s", out)
	}
	if page := n.Page(dora, "/agents/slow"); !strings.Contains(page, "2 of 2 (100 %), full") || !strings.Contains(page, `class="meter-used" width="100.00%"`) {
		t.Errorf("the agent's page: %.3000s", page)
	}
	metrics := n.Page(http.DefaultClient, "/metrics")
	for _, want := range []string{`gatehouse_agent_inbox{agent="slow"} 2`, `gatehouse_agent_inbox{agent="other"} 1`, `gatehouse_agent_inbox_size{agent="slow"} 2`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}

	// Nobody but an admin.
	if code, _ := n.Call(http.MethodPost, "/api/v1/delegations/cancel", operator, map[string]any{}, nil); code != http.StatusForbidden {
		t.Errorf("an operator was answered %d", code)
	}
	if page := n.Page(dora, "/delegations"); strings.Contains(page, "/delegations/stop") {
		t.Error("an operator is offered the button")
	}
	if res, err := dora.Get(n.URL + "/delegations/stop"); err != nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("an operator opens the page: %v, %v", res.Status, err)
	}

	// One agent's work, from the shell.
	const count = "3 delegations of slow in 3 tasks run or wait"
	if out, code := p.Cli(n, "--token", p.Asker, "cancel", "--all", "--agent", "SLOW"); code != console.ExitUsage || !strings.Contains(out, count+". Nothing was stopped") || !strings.Contains(out, "--yes") {
		t.Errorf("off a terminal: exit %d\n%s", code, out)
	}
	if said, err := asks(p, n, "no\n"); err == nil || !strings.Contains(said, count+". Stop all of it?") {
		t.Errorf("on a terminal, no: %v\n%s", err, said)
	}
	stands(p, tasks[0], orchestrator.Running)
	if said, err := asks(p, n, "y\n"); err != nil || !strings.Contains(said, "stopped 3 delegations in 3 tasks") {
		t.Errorf("on a terminal, yes: %v\n%s", err, said)
	}
	for _, task := range tasks[:3] {
		stoppedFor(p, stands(p, task, orchestrator.Cancelled), "wrong branch")
	}
	stands(p, tasks[3], orchestrator.Running)
	if out, code := p.Cli(n, "--token", p.Asker, "cancel", "--all", "--agent", "slow", "--yes", "--json"); code != 0 || !strings.Contains(out, `"delegations":0`) {
		t.Errorf("again: exit %d\n%s", code, out)
	}

	stopsByForm(p, n, admin, tasks[3])
}

// TestACancelSaysWhy: whoever cancels one task may say why, in the shell, on its page and
// over the API, and who looks later reads it with their name, everywhere. Without a reason
// it is cancelled as before; one that is too long cancels nothing.
func TestACancelSaysWhy(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), stopTeam)
	n := p.Start(p.Config, "")
	ann := n.Browser("ann")
	const why, said = "wrong branch", `ann cancelled this. The reason: "wrong branch"`
	for where, cancel := range map[string]func(task string){
		"in the shell": func(task string) {
			if out, code := p.Cli(n, "--token", p.Asker, "cancel", task, "--reason", why); code != 0 || !strings.Contains(out, " cancelled") {
				t.Errorf("exit %d\n%s", code, out)
			}
		},
		"on the page": func(task string) {
			reads(t, n.Page(ann, "/delegations/"+task), `action="/delegations/`+task+`/cancel"`, `name="reason"`, ">Cancel task</button>")
			res, err := ann.PostForm(n.URL+"/delegations/"+task+"/cancel", url.Values{"reason": {why}})
			p.Must(err)
			if p.Must(res.Body.Close()); res.StatusCode != http.StatusOK {
				t.Errorf("the form was answered with %s", res.Status)
			}
		},
		"over the API": func(task string) {
			if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+task+"/cancel", p.Asker, map[string]any{"reason": why}, nil); err != nil || code != http.StatusOK {
				t.Errorf("%d, %v", code, err)
			}
		},
	} {
		t.Run(where, func(t *testing.T) {
			task := n.Send("slow", "", where)
			cancel(task)
			stoppedFor(p, stands(p, task, orchestrator.Cancelled), why)
			for _, look := range []string{"status", "tree"} {
				if out, code := p.Cli(n, "--token", p.Asker, look, task); code != 0 || !strings.Contains(out, said) {
					t.Errorf("%s: exit %d\n%s", look, code, out)
				}
			}
			reads(t, n.Page(ann, "/delegations/"+task), html.EscapeString(said))
			reads(t, n.Page(ann, "/delegations/"+task+"?tab=events"), html.EscapeString(said))
		})
	}

	task := n.Send("slow", "", "on")
	if out, code := p.Cli(n, "--token", p.Asker, "cancel", task, "--reason", strings.Repeat("x", orchestrator.MaxReason+1)); code != console.ExitUsage || !strings.Contains(out, "500 is the limit") {
		t.Errorf("a reason that is too long: exit %d\n%s", code, out)
	}
	if out, code := p.Cli(n, "--token", p.Asker, "cancel", task, "--agent", "slow"); code != console.ExitUsage || !strings.Contains(out, "go with --all") {
		t.Errorf("--agent without --all: exit %d\n%s", code, out)
	}
	if d := p.Root(task); d.State.Ended() {
		t.Errorf("it is %s", d.State)
	}
	if out, code := p.Cli(n, "--token", p.Asker, "cancel", task); code != 0 {
		t.Errorf("without a reason: exit %d\n%s", code, out)
	}
	if d := stands(p, task, orchestrator.Cancelled); d.Error.Message != "ann cancelled this." {
		t.Errorf("without a reason it says %q", d.Error.Message)
	}
	n.Stop()
}

// stopsByForm stops the last task by the page, without script.
func stopsByForm(p *placetest.Place, n *placetest.Node, admin *http.Client, task string) {
	p.Helper()
	if page := n.Page(admin, "/delegations"); !strings.Contains(page, `href="/delegations/stop"`) {
		p.Error("an admin is not offered the button")
	}
	page := n.Page(admin, "/delegations/stop")
	at := countedAt.FindStringSubmatch(page)
	if at == nil || !strings.Contains(page, "1 delegation in 1 task") {
		p.Fatalf("the page counts nothing: %.3000s", page)
	}
	form := url.Values{"until": {html.UnescapeString(at[1])}, "reason": {"fire drill"}}
	post := func(status int, says string) {
		p.Helper()
		res, err := admin.PostForm(n.URL+"/delegations/stop", form)
		p.Must(err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		p.Must(err)
		if res.StatusCode != status || !strings.Contains(string(body), says) {
			p.Errorf("%s, without %q: %.3000s", res.Status, says, body)
		}
	}
	post(http.StatusBadRequest, "The box was not ticked. Nothing was stopped.")
	stands(p, task, orchestrator.Running)
	form.Set("sure", "yes")
	post(http.StatusOK, "Stopped: 1 delegation in 1 task.")
	stoppedFor(p, stands(p, task, orchestrator.Cancelled), "fire drill")
	post(http.StatusOK, "Nothing was left to stop")
	form.Del("until")
	post(http.StatusBadRequest, "Nothing was stopped")
}

// asks runs cancel --all for slow on a terminal, where somebody answers.
func asks(p *placetest.Place, n *placetest.Node, answer string) (said string, err error) {
	p.Helper()
	path := filepath.Join(p.TempDir(), "answer")
	p.Must(os.WriteFile(path, []byte(answer), 0o600))
	in, err := os.Open(path)
	p.Must(err)
	defer in.Close()
	var out bytes.Buffer
	sh := &console.Shell{Globals: console.Globals{URL: n.URL, Token: p.Asker}, In: in, Stdin: true, Out: &out, Errs: &out, Env: os.LookupEnv, Now: time.Now}
	api, err := sh.Client(p.Context())
	p.Must(err)
	err = (&cli.CancelCmd{All: true, Agent: "slow", Reason: "wrong branch"}).Run(p.Context(), sh, api)
	return out.String(), err
}

// stands waits until the root of a task is in a state.
func stands(p *placetest.Place, task string, s orchestrator.State) (d orchestrator.Delegation) {
	p.Helper()
	p.Until(task+" to be "+string(s), func() bool { d = p.Root(task); return d.State == s })
	return d
}

// stoppedFor checks the reason in the cancel event of a delegation.
func stoppedFor(p *placetest.Place, d orchestrator.Delegation, reason string) {
	p.Helper()
	for _, e := range p.Events(d.TaskID) {
		if e.Type == event.Cancelled && e.Actor == "ann" && strings.Contains(string(e.Data), `"reason":"`+reason+`"`) {
			return
		}
	}
	p.Errorf("no cancel of %s has the reason %q", d.TaskID, reason)
}
