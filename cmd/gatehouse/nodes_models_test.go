package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/storetest"
	"gatehouse/web/wire"
)

// deepTeam is three levels: a model that hands on to two models at once, each of which
// hands on to two programs at once that never end, and leave children behind.
const deepTeam = `
engine: {workers: 2, lease: 10m, max_handoffs: 20}
providers:
  local: {base_url: "BASE"}
agents:
  boss: {kind: llm, model: local/one}
  left: {kind: llm, model: local/one}
  right: {kind: llm, model: local/one}
` + never + never + never + never

// never is a program that does not end; NAME stands for its name.
const never = `  NAME: {kind: command, sandbox: off, env: {PLACE: MARK}, command: [sh, -c, '(setsid sleep 1000 &); sleep 1000 & wait; echo late']}
`

// deepWork hands on to everybody below, all at once.
func deepWork(a modeltest.Ask) modeltest.Answer {
	below := []string{"one", "two"}
	switch {
	case strings.Contains(a.System, "You are the agent boss"):
		below = []string{"left", "right"}
	case strings.Contains(a.System, "You are the agent right"):
		below = []string{"three", "four"}
	}
	if a.Turn > 1 {
		return modeltest.Say("all answered")
	}
	var calls []modeltest.Call
	for _, name := range below {
		calls = append(calls, modeltest.ToolCall("delegate_to_agent", map[string]any{"agent": name, "task": "Work"}))
	}
	return modeltest.Answer{Calls: calls}
}

// modelNodes is a place on PostgreSQL with two nodes whose models follow the script.
func modelNodes(t *testing.T, team string, script modeltest.Script) (p *placetest.Place, fake *modeltest.Server, one, two *placetest.Node) {
	t.Helper()
	fake = modeltest.Start(script)
	t.Cleanup(fake.Close)
	team = strings.ReplaceAll(team, "BASE", fake.OpenAI())
	p = placetest.New(t, storetest.Postgres(t), team)
	second, _ := p.Configure("two", team)
	return p, fake, p.Start(p.Config, ""), p.Start(second, "")
}

// tree lists the delegations of a task, callers first.
func tree(p *placetest.Place, taskID string) []orchestrator.Delegation {
	p.Helper()
	tree, err := p.Store.Tree(p.Context(), taskID)
	p.Must(err)
	return tree
}

// TestACancelEndsThreeLevelsOnTwoNodes: model → model → program, the programs on both
// nodes: a cancel of the root ends all, no process of theirs is left, and no event of
// theirs comes later (P37–P39).
func TestACancelEndsThreeLevelsOnTwoNodes(t *testing.T) {
	t.Parallel()
	team := deepTeam
	for _, name := range []string{"one", "two", "three", "four"} {
		team = strings.Replace(team, "NAME", name, 1)
	}
	p, fake, one, two := modelNodes(t, team, deepWork)
	task := one.Send("boss", "", "deep")
	const processes = 3 // of each program: the shell and two that sleep
	p.Until("four programs at work", func() bool { return p.Marked() >= 4*processes })
	at := map[string]int{}
	for _, d := range tree(p, task) {
		if d.Depth == 2 {
			at[d.Holder]++
		}
	}
	if at[name(p, "one")] != 2 || at[name(p, "two")] != 2 {
		t.Fatalf("the programs run on %v; each node has two places", at)
	}
	start := time.Now()
	if status, err := two.Call(http.MethodPost, "/api/v1/delegations/"+task+"/cancel", two.Asker, nil, nil); err != nil || status != http.StatusOK {
		t.Fatalf("the cancel was answered with %d, %v", status, err)
	}
	answered := time.Since(start)
	for _, d := range tree(p, task) {
		if d.State != orchestrator.Cancelled || d.Holder != "" || d.TokenHash != "" {
			t.Errorf("%s is %s and held by %q", d.To, d.State, d.Holder)
		}
	}
	events := len(p.Events(task))
	p.NothingLeft(p.Data, p.Dir+"/two")
	t.Logf("all 7 were cancelled after %s, and all %d processes gone after %s; the aim is 2 s", answered.Round(time.Millisecond), 4*processes, time.Since(start).Round(time.Millisecond))
	asks := len(fake.Asks())
	one.Stop() // a run that still worked would write its last words now at the latest
	two.Stop()
	if late := p.Events(task)[events:]; len(late) > 0 || len(fake.Asks()) != asks {
		t.Errorf("%d events and %d calls of models came later: %v", len(late), len(fake.Asks())-asks, late)
	}
	if got := placetest.Count(p.Events(task), event.Cancelled, ""); got != 7 {
		t.Errorf("%d cancellations are on record, want 7", got)
	}
}

// pausedTeam is a model with files that hands on to another one.
const pausedTeam = `
engine: {workers: 2, lease: 10m}
repositories:
  app: {path: "REPO", branch: main}
providers:
  local: {base_url: "BASE"}
agents:
  boss: {kind: llm, model: local/one, repository: app}
  helper: {kind: llm, model: local/one, repository: app, analysis_only: true, approval: auto}
`

// TestAPausedTaskGoesOnOnAnotherNode: a task is paused on one node while its model
// answers there, goes on at the other one when the first is gone, with the files that it
// had, and is forked there from a turn in the middle. No stored turn is asked for again.
func TestAPausedTaskGoesOnOnAnotherNode(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p, fake, one, two := modelNodes(t, pausedTeam, func(a modeltest.Ask) modeltest.Answer {
		if strings.Contains(a.System, "You are the agent helper") {
			return modeltest.Say("seen")
		}
		answer := []modeltest.Answer{
			modeltest.Use("write_file", map[string]any{"path": "note.txt", "content": "first\n"}),
			modeltest.Use("read_file", map[string]any{"path": "note.txt"}),
			modeltest.Use("delegate_to_agent", map[string]any{"agent": "helper", "task": "Look"}),
			modeltest.Say("read " + a.Result("read_file") + ", " + a.Result("delegate_to_agent")),
		}[min(a.Turn, 4)-1]
		if a.Turn == 2 {
			once.Do(func() { close(asked) })
			answer.Until = release
		}
		return answer
	})
	two.Stop() // so that the first node has the run
	task := one.Send("boss", "app", "pause")
	<-asked
	two = p.Start(p.Dir+"/two.yaml", "")
	control := func(n *placetest.Node, act string, body, into any, want int) {
		t.Helper()
		if status, err := n.Call(http.MethodPost, "/api/v1/delegations/"+task+"/"+act, n.Asker, body, into); err != nil || status != want {
			t.Fatalf("%s was answered with %d, %v", act, status, err)
		}
	}
	control(two, "pause", nil, nil, http.StatusOK)
	close(release)
	p.Until("the run to hold", func() bool { d := p.Root(task); return d.State == orchestrator.Queued && d.Holder == "" })
	p.NothingLeft(p.Data)
	if turn, err := p.Store.LastTurn(t.Context(), p.Root(task).ID, 0); err != nil || turn < 4 {
		t.Errorf("%d turns are stored, %v: the answer that was under way is lost", turn, err)
	}
	one.Stop()
	control(two, "resume", nil, nil, http.StatusOK)
	if root := two.Through(task); root.Result == nil || !strings.Contains(root.Result.Text, "read first") || !strings.Contains(root.Result.Text, "seen") {
		t.Errorf("%s: %+v, %v", root.State, root.Result, root.Error)
	}
	p.LandedOnce(task)
	if fake.Repeats() != 0 || len(fake.Asks()) != 5 {
		t.Errorf("asked %d times, %d of them again; want 5, none again", len(fake.Asks()), fake.Repeats())
	}
	var forked wire.Submitted
	control(two, "fork", map[string]int{"turn": 5}, &forked, http.StatusAccepted)
	r := p.Asked(forked.ID)
	if len(r.Revision.Files) != 1 || r.Revision.Files[0].Path != "note.txt" {
		t.Errorf("the fork changes %+v", r.Revision.Files)
	}
	if len(fake.Asks()) != 8 { // the third and fourth turn, and helper's
		t.Errorf("the fork asked %d times, want 3", len(fake.Asks())-5)
	}
	if got := placetest.Count(p.Events(forked.ID), event.Forked, ""); got != 1 {
		t.Error(fmt.Sprint("forks on record: ", got))
	}
	two.Stop()
}
