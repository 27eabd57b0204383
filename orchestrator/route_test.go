package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/record/event"
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
	either(t, func(t *testing.T, url string) {
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
		w.until(root.ID, "acknowledged", func(orchestrator.Delegation) bool { return w.count(root.TaskID, event.Acknowledged) == 1 })
		if d := w.state(root.ID, orchestrator.Running); w.count(root.TaskID, event.Completed) != 0 {
			t.Errorf("%s completed before it may", d.To)
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

// P38: a cancel in the middle ends what is there and below; what is above is told and
// goes on.
func TestACancelInTheMiddleLeavesWhatIsAboveAlone(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := limited(t, url, func(*orchestrator.Settings) {}, "a", "b", "c")
		w.script("a", told(agent.Hop{To: "b", Text: "go"}))
		w.script("b", agenttest.HandOn("c"))
		leaf := w.script("c", agenttest.NewGate().Then(agenttest.Answer("late")))
		root := w.ask(orchestrator.Submission{Agent: "a", Text: "go"})
		<-leaf.Started()
		tree, err := w.store.Tree(t.Context(), root.TaskID)
		if err != nil || len(tree) != 3 {
			t.Fatalf("%v: %d delegations", err, len(tree))
		}
		if _, err := w.engine.Cancel(t.Context(), tree[1].ID, "ann"); err != nil {
			t.Fatal(err)
		}
		if d := w.state(root.ID, orchestrator.Completed); !strings.HasPrefix(d.Result.Text, "cancelled: ") {
			t.Errorf("a was told %q", d.Result.Text)
		}
		for _, d := range tree[1:] {
			w.state(d.ID, orchestrator.Cancelled)
		}
	})
}

// O20, O21: delegations to one agent at the same time run each in a place of its own, at
// once, and none waits for another's lock.
func TestParallelDelegationsToOneAgentRunAtOnce(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("kik", "coder")...)
		const all = 3
		var mu sync.Mutex
		places, together := map[string]bool{}, make(chan struct{})
		w.script("coder", func(ctx context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			mu.Lock()
			if places[job.Dir+" "+job.ScratchDir+" "+job.DelegationID] = true; len(places) == all {
				close(together)
			}
			mu.Unlock()
			select {
			case <-together:
				return agenttest.Done("did " + job.Text), nil
			case <-ctx.Done():
				return agent.Outcome{}, ctx.Err()
			}
		})
		w.script("kik", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			if len(job.Children) == 0 {
				return agent.Outcome{Park: &agent.Park{Hops: []agent.Hop{{Ref: "1", To: "coder", Text: "one"}, {Ref: "2", To: "coder", Text: "two"}, {Ref: "3", To: "coder", Text: "three"}}}}, nil
			}
			var texts []string
			for _, c := range job.Children {
				texts = append(texts, c.Result.Text)
			}
			return agenttest.Done(strings.Join(texts, ", ")), nil
		})
		w.start()
		if d := w.state(w.send("kik", "split").ID, orchestrator.Completed); d.Result.Text != "did one, did two, did three" {
			t.Errorf("kik was told %q", d.Result.Text)
		}
	})
}

// P13, P15, P48: a spawn passes the guards like any hop, finds the first with a capability, and
// its child has what came with it: the context, and the channel of the task.
func TestASpawnKeepsTheAllowList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", agent.Spec{Name: "boss", Restricted: true, DelegatesTo: []string{"worker"}},
		agent.Spec{Name: "worker", Capabilities: []string{"testing"}}, agent.Spec{Name: "zoe", Capabilities: []string{"testing"}}, agent.Spec{Name: "stranger", Capabilities: []string{"lying"}})
	w.config.Repositories = nil
	w.engine.SetConfig(w.config)
	given := make(chan agent.Job, 1)
	w.script("worker", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		given <- job
		return agenttest.Done("tested"), nil
	})
	w.script("boss", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		if _, err := host.Delegate(ctx, agent.Hop{Capability: "testing", Text: "test it", Spawn: true, Context: map[string]string{"why": "tomorrow"}}); err != nil {
			return agent.Outcome{}, err
		}
		c, err := host.Delegate(ctx, agent.Hop{Capability: "lying", Text: "lie", Spawn: true})
		if err != nil || c.State != agent.Refused {
			return agent.Outcome{}, agent.Fail("exit", "a stranger was spawned: %+v, %v", c, err)
		}
		job := <-given
		return agenttest.Done(fmt.Sprint(c.Error.Code, " ", job.Channel, " ", job.Context[0].Value)), nil
	})
	w.start()
	if d := w.state(w.sendTo("boss", "go").ID, orchestrator.Completed); d.Result.Text != "not_allowed web tomorrow" {
		t.Errorf("boss answered %q", d.Result.Text)
	}
}

// H9, H10: hand-overs that were made count, in their task alone; refusals do not.
func TestOnlyHandoversThatWereMadeCount(t *testing.T) {
	t.Parallel()
	w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(s *orchestrator.Settings) { s.MaxHandoffs = 2 }, "kik", "coder")
	w.script("coder", agenttest.Answer("done"))
	w.script("kik", told(agent.Hop{To: "coder", Text: "a"}, agent.Hop{To: "kik", Text: "b"}, agent.Hop{To: "nobody", Text: "c"}, agent.Hop{To: "coder", Text: "d"}, agent.Hop{To: "coder", Text: "e"}))
	for range 2 {
		d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, orchestrator.Completed)
		got := strings.Split(d.Result.Text, "\n")
		if got[0] != "done" || !strings.HasPrefix(got[1], "self: ") || !strings.HasPrefix(got[2], "unknown_agent: ") || got[3] != "done" || !strings.HasPrefix(got[4], "max_handoffs: Maximum handoffs reached") {
			t.Errorf("kik was told %q", got)
		}
	}
}

// O14, O15: what a child used is its caller's, so that handing on does not evade the cap:
// the next use that passes it ends the caller.
func TestAChildsUseCountsForItsCaller(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := limited(t, url, func(*orchestrator.Settings) {}, "kik", "coder")
		w.script("coder", uses(900))
		own := map[string]int64{"as much": 100, "more": 101}
		w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			c, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: "go"})
			if err == nil {
				c, err = host.Await(ctx, c.ID)
			}
			if err != nil || c.Usage.InputTokens+c.Usage.OutputTokens != 900 {
				return agent.Outcome{}, agent.Fail("exit", "coder used %+v, %v", c.Usage, err)
			}
			return uses(own[job.Text])(ctx, job, host)
		})
		for text, want := range map[string]orchestrator.State{"as much": orchestrator.Completed, "more": orchestrator.Failed} {
			d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: text, Budget: &budget.Limits{Tokens: amount[int64](1000)}}).ID, want)
			if want == orchestrator.Failed && !strings.HasPrefix(d.Error.Message, "Token budget exceeded: kik used 1,001 of 1,000 tokens") {
				t.Errorf("it failed with %+v", d.Error)
			}
		}
	})
}
