package orchestrator_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/event"
)

// along hands a task on to the agent that stands behind the running one in the task's
// own text, and answers with what came back.
func along(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	route := strings.Fields(job.Text)
	next := slices.Index(route, job.Agent.Name) + 1
	if next == len(route) {
		return agenttest.Done("the end"), nil
	}
	return told(agent.Hop{To: route[next], Text: job.Text})(ctx, job, host)
}

// K7, K10, K12, O9, O12, P17, P55: twelve tasks go through the same five agents at once,
// each on a way of its own. Depth, chain and limit travel with the work: each task's
// fourth hop is refused with the whole way of that task, and no other's.
func TestManyWaysThroughTheSameAgentsAtOnce(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		names := []string{"ada", "bea", "cleo", "dora", "eve"}
		w := newWorld(t, url, specs(names...)...)
		w.config.Repositories = nil
		w.engine.SetConfig(w.config)
		for _, name := range names {
			w.script(name, along)
		}
		w.start()
		sent := map[string][]string{}
		for i := range 12 {
			way := append(slices.Clone(names[i%5:]), names[:i%5]...)
			way[1+i%3], way[4] = way[4], way[1+i%3]
			sent[w.sendTo(way[0], strings.Join(way, " ")).ID] = way
		}
		for id, way := range sent {
			d := w.state(id, orchestrator.Completed)
			if whole := strings.Join(way, " → "); !strings.HasPrefix(d.Result.Text, "max_depth: Maximum delegation depth reached") || !strings.Contains(d.Result.Text, whole+" would be 4 hops") {
				t.Errorf("%s was told %q", whole, d.Result.Text)
			}
			tree, err := w.store.Tree(t.Context(), d.TaskID)
			if err != nil || len(tree) != 4 {
				t.Fatalf("%v: %d delegations, want 4", err, len(tree))
			}
			for depth, c := range tree {
				if c.Depth != depth || depth > 0 && c.Chain.String() != strings.Join(way[:depth+1], " → ") {
					t.Errorf("%s at depth %d has the chain %s", c.To, c.Depth, c.Chain)
				}
			}
		}
	})
}

// A10, A22, A23: work is acknowledged when it is picked up, before it is done; what the
// agent notes in the meantime and how it ended follow, each as an event of its own.
func TestWorkIsAcknowledgedBeforeItIsDone(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("quick", "broken")...)
		w.config.Repositories = nil
		w.engine.SetConfig(w.config)
		gate := agenttest.NewGate()
		w.script("quick", gate.Then(func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			return agenttest.Done("done"), host.Progress(ctx, "half way")
		}))
		w.script("broken", func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
			return agent.Outcome{}, agent.Fail("exit", "It broke.")
		})
		root := w.sendTo("quick", "go")
		if w.count(root.TaskID, event.Acknowledged) != 0 {
			t.Error("what nobody picked up is acknowledged")
		}
		w.start()
		d := w.until(root.ID, "acknowledged", func(orchestrator.Delegation) bool { return w.count(root.TaskID, event.Acknowledged) == 1 })
		if d.State != orchestrator.Running || w.count(root.TaskID, event.Completed) != 0 {
			t.Errorf("it is %s before it may end", d.State)
		}
		gate.Open()
		w.state(root.ID, orchestrator.Completed)
		if got := w.types(root.TaskID); got != "task.created delegation.queued delegation.acknowledged delegation.progress delegation.completed" {
			t.Errorf("history: %s", got)
		}
		ill := w.sendTo("broken", "go")
		if d := w.state(ill.ID, orchestrator.Failed); d.Error.Code != "exit" || !strings.HasSuffix(w.types(ill.TaskID), "delegation.acknowledged delegation.failed") {
			t.Errorf("%v; history: %s", d.Error, w.types(ill.TaskID))
		}
	})
}

// types lists the kinds of a task's events in their order.
func (w *world) types(taskID string) string {
	var all []string
	for _, e := range w.events(taskID) {
		all = append(all, string(e.Type))
	}
	return strings.Join(all, " ")
}
