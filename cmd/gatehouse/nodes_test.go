package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/store/storetest"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// nodesTeam has an agent that only answers and one whose every task adds a file of its
// own. Both leave a line outside, by which a second run would show; the writer waits
// for a sign first.
const nodesTeam = `
engine: {workers: 3, lease: LEASE, max_attempts: 100}
repositories:
  app: {path: "REPO", branch: main}
agents:
  clerk:
    kind: command
    sandbox: off
    command: [sh, -c, 'echo "$GATEHOUSE_TASK_ID" >> "DIR/ran"']
  writer:
    kind: command
    repository: app
    sandbox: off
    env: {PLACE: MARK}
    command:
      - sh
      - -c
      - |
        until [ -e "DIR/sign" ]; do sleep 0.05; done
        echo hello > "$GATEHOUSE_TASK_ID"
        echo "$GATEHOUSE_TASK_ID" >> "DIR/ran"
`

// twoNodes is a place on PostgreSQL with the configurations of two nodes, and with
// leases of a length.
func twoNodes(t *testing.T, lease string) (p *placetest.Place, one, two string) {
	t.Helper()
	team := strings.ReplaceAll(nodesTeam, "LEASE", lease)
	p = placetest.New(t, storetest.Postgres(t), team)
	two, _ = p.Configure("two", team)
	return p, p.Config, two
}

// name is what a node is called in events.
func name(p *placetest.Place, folder string) string {
	p.Helper()
	b, err := os.ReadFile(filepath.Join(p.Dir, folder, "node"))
	p.Must(err)
	return strings.TrimSpace(string(b))
}

// workers counts which node started how many of these tasks' agents.
func workers(p *placetest.Place, tasks []string) map[string]int {
	p.Helper()
	started := map[string]int{}
	for _, id := range tasks {
		events, err := p.Store.Events(p.Context(), id, 0, 1000)
		p.Must(err)
		for _, e := range events {
			if _, after, ok := strings.Cut(string(e.Data), `"node":"`); ok && e.Type == event.Acknowledged {
				name, _, _ := strings.Cut(after, `"`)
				started[name]++
			}
		}
	}
	return started
}

// TestTwoNodesShareTheWork: of 200 tasks that are sent to two nodes of one database
// each runs once, and both nodes work.
func TestTwoNodesShareTheWork(t *testing.T) {
	t.Parallel()
	const tasks, changes = 200, 12
	p, first, second := twoNodes(t, "10m")
	p.Touch("sign")
	nodes := []*placetest.Node{p.Start(first, ""), p.Start(second, "")}
	var sent []string
	var plain, written []int
	for i := range tasks {
		agent, repository, of := "clerk", "", &plain
		if i%(tasks/changes) == 0 && i/(tasks/changes) < changes {
			agent, repository, of = "writer", "app", &written
		}
		*of = append(*of, i)
		sent = append(sent, nodes[i%2].Send(agent, repository, fmt.Sprint(i)))
	}
	for _, i := range written {
		if code, err := nodes[(i+1)%2].Decide(p.Asked(sent[i])); err != nil || code != http.StatusOK {
			t.Fatalf("the yes to task %d: %d, %v", i, code, err)
		}
	}
	landed := 0
	for _, i := range append(plain, written...) { // a landing waits behind all that was ready before its yes
		id := sent[i]
		root := nodes[(i+1)%2].Through(id) // the other node than it was sent to
		if root.State != orchestrator.Completed {
			t.Errorf("task %d is %s: %v", i, root.State, root.Error)
		}
		if root.Repository != "" {
			p.LandedOnce(id)
			landed++
		}
		p.Events(id)
	}
	if landed != changes {
		t.Errorf("%d changes landed, want %d", landed, changes)
	}
	ran, err := os.ReadFile(filepath.Join(p.Dir, "ran"))
	p.Must(err)
	times := map[string]int{}
	for id := range strings.FieldsSeq(string(ran)) {
		times[id]++
	}
	for _, id := range sent {
		if times[id] != 1 {
			t.Errorf("task %s ran %d times", id, times[id])
		}
	}
	started := workers(p, sent)
	if one, two := started[name(p, "one")], started[name(p, "two")]; one == 0 || two == 0 || one+two != tasks {
		t.Errorf("the nodes started %v, want all %d tasks and each node some", started, tasks)
	}
	p.NothingLeft(filepath.Join(p.Dir, "one"), filepath.Join(p.Dir, "two"))
	for _, n := range nodes {
		n.Stop()
	}
}

// TestARequestOfOneNodeLandsOnAnother: what a node asked for is decided on and lands
// from another one, which has seen neither the agent nor its commit.
func TestARequestOfOneNodeLandsOnAnother(t *testing.T) {
	t.Parallel()
	p, first, second := twoNodes(t, "10m")
	p.Touch("sign")
	one := p.Start(first, "")
	task := one.Send("writer", "app", "change")
	r := p.Asked(task)
	one.Stop()
	two := p.Start(second, "")
	var diff strings.Builder
	status, err := two.Text("/api/v1/approvals/"+r.ID+"/patch", two.Approver, &diff)
	if err != nil || status != http.StatusOK || !strings.Contains(diff.String(), "+hello") {
		t.Fatalf("the other node shows the change with status %d, %v: %q", status, err, &diff)
	}
	two.Through(task)
	p.LandedOnce(task)
}

// TestANodeThatDiesIsReplaced: one of two nodes is killed with its hands full; the
// other one takes over when the leases have run out. All tasks end, each with one
// commit, and nothing of the dead node stays.
func TestANodeThatDiesIsReplaced(t *testing.T) {
	t.Parallel()
	const tasks = 12
	p, first, second := twoNodes(t, "2s")
	one, two := p.Start(first, ""), p.Start(second, "")
	var sent []string
	for i := range tasks {
		sent = append(sent, []*placetest.Node{one, two}[i%2].Send("writer", "app", fmt.Sprint(i)))
	}
	p.Until("both nodes to be at work", func() bool {
		started := workers(p, sent)
		return started[name(p, "one")] >= 3 && started[name(p, "two")] >= 3
	})
	p.Until("the agents of both nodes", func() bool { return p.Marked() >= 6 })
	two.Kill()
	p.Touch("sign")
	for _, id := range sent {
		one.Through(id)
		p.LandedOnce(id)
	}
	if commits := placetest.Git(t, p.Repo, "rev-list", "--merges", "--count", "main"); commits != fmt.Sprint(tasks) {
		t.Errorf("%s merges on main, want %d", commits, tasks)
	}
	p.NothingLeft(filepath.Join(p.Dir, "one"))
	again := p.Start(second, "")
	p.NothingLeft(filepath.Join(p.Dir, "two"))
	again.Stop()
}
