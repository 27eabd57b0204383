package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
func twoNodes(t *testing.T, lease string) (p *place, one, two string) {
	t.Helper()
	team := strings.ReplaceAll(nodesTeam, "LEASE", lease)
	p = newPlace(t, storetest.Postgres(t), team)
	two, _ = p.configure("two", team)
	return p, p.config, two
}

// name is what a node is called in events.
func (p *place) name(folder string) string {
	p.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, folder, "node"))
	p.must(err)
	return strings.TrimSpace(string(b))
}

// workers counts which node started how many of these tasks' agents.
func (p *place) workers(tasks []string) map[string]int {
	p.Helper()
	started := map[string]int{}
	for _, id := range tasks {
		events, err := p.store.Events(p.Context(), id, 0, 1000)
		p.must(err)
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
	p.touch("sign")
	nodes := []*node{p.start(first, ""), p.start(second, "")}
	var sent []string
	var plain, written []int
	for i := range tasks {
		agent, repository, of := "clerk", "", &plain
		if i%(tasks/changes) == 0 && i/(tasks/changes) < changes {
			agent, repository, of = "writer", "app", &written
		}
		*of = append(*of, i)
		sent = append(sent, nodes[i%2].send(agent, repository, fmt.Sprint(i)))
	}
	for _, i := range written {
		if code, err := nodes[(i+1)%2].decide(p.asked(sent[i])); err != nil || code != http.StatusOK {
			t.Fatalf("the yes to task %d: %d, %v", i, code, err)
		}
	}
	landed := 0
	for _, i := range append(plain, written...) { // a landing waits behind all that was ready before its yes
		id := sent[i]
		root := nodes[(i+1)%2].through(id) // the other node than it was sent to
		if root.State != orchestrator.Completed {
			t.Errorf("task %d is %s: %v", i, root.State, root.Error)
		}
		if root.Repository != "" {
			p.landedOnce(id)
			landed++
		}
		p.events(id)
	}
	if landed != changes {
		t.Errorf("%d changes landed, want %d", landed, changes)
	}
	ran, err := os.ReadFile(filepath.Join(p.dir, "ran"))
	p.must(err)
	times := map[string]int{}
	for id := range strings.FieldsSeq(string(ran)) {
		times[id]++
	}
	for _, id := range sent {
		if times[id] != 1 {
			t.Errorf("task %s ran %d times", id, times[id])
		}
	}
	started := p.workers(sent)
	if one, two := started[p.name("one")], started[p.name("two")]; one == 0 || two == 0 || one+two != tasks {
		t.Errorf("the nodes started %v, want all %d tasks and each node some", started, tasks)
	}
	p.nothingLeft(filepath.Join(p.dir, "one"), filepath.Join(p.dir, "two"))
	for _, n := range nodes {
		n.stop()
	}
}

// TestARequestOfOneNodeLandsOnAnother: what a node asked for is decided on and lands
// from another one, which has seen neither the agent nor its commit.
func TestARequestOfOneNodeLandsOnAnother(t *testing.T) {
	t.Parallel()
	p, first, second := twoNodes(t, "10m")
	p.touch("sign")
	one := p.start(first, "")
	task := one.send("writer", "app", "change")
	r := p.asked(task)
	one.stop()
	two := p.start(second, "")
	var diff strings.Builder
	status, err := two.text("/api/v1/approvals/"+r.ID+"/patch", two.approver, &diff)
	if err != nil || status != http.StatusOK || !strings.Contains(diff.String(), "+hello") {
		t.Fatalf("the other node shows the change with status %d, %v: %q", status, err, &diff)
	}
	two.through(task)
	p.landedOnce(task)
}

// TestANodeThatDiesIsReplaced: one of two nodes is killed with its hands full; the
// other one takes over when the leases have run out. All tasks end, each with one
// commit, and nothing of the dead node stays.
func TestANodeThatDiesIsReplaced(t *testing.T) {
	t.Parallel()
	const tasks = 12
	p, first, second := twoNodes(t, "2s")
	one, two := p.start(first, ""), p.start(second, "")
	var sent []string
	for i := range tasks {
		sent = append(sent, []*node{one, two}[i%2].send("writer", "app", fmt.Sprint(i)))
	}
	p.until("both nodes to be at work", func() bool {
		started := p.workers(sent)
		return started[p.name("one")] >= 3 && started[p.name("two")] >= 3
	})
	p.until("the agents of both nodes", func() bool { return p.marked() >= 6 })
	two.kill()
	p.touch("sign")
	for _, id := range sent {
		one.through(id)
		p.landedOnce(id)
	}
	if commits := git(t, p.repo, "rev-list", "--merges", "--count", "main"); commits != fmt.Sprint(tasks) {
		t.Errorf("%s merges on main, want %d", commits, tasks)
	}
	p.nothingLeft(filepath.Join(p.dir, "one"))
	again := p.start(second, "")
	p.nothingLeft(filepath.Join(p.dir, "two"))
	again.stop()
}
