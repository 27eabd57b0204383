package orchestrator_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/storetest"
)

// P37: all work of one agent is stopped, and its callers hear that; then everything is, also
// what waits in a queue or for people. Every cancel says who did it and why, the count stands
// before, and the same stop asked for again ends nothing.
func TestEverythingIsStopped(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("kik", "coder", "writer", "quick")...)
		w.config.Settings.Workers = 2
		w.engine.SetConfig(w.config)
		coder := w.script("coder", agenttest.NewGate().Then(agenttest.Answer("never")))
		told := make(chan string, 1)
		held := agenttest.NewGate()
		kik := w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			child, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: "x"})
			if err == nil {
				child, err = host.Await(ctx, child.ID)
			}
			if err != nil {
				return agent.Outcome{}, err
			}
			told <- child.Error.Message
			return held.Then(agenttest.Answer("never"))(ctx, job, host)
		})
		w.script("writer", writes("core/a.txt", "changed\n"))
		w.script("quick", agenttest.Answer("done"))
		w.start()
		over := w.state(w.send("quick", "x").ID, orchestrator.Completed) // what ended by itself is counted nowhere below
		asking := w.send("writer", "Change it")
		w.state(asking.ID, orchestrator.AwaitingApproval)
		calling := w.send("kik", "Have it done")
		<-kik.Started()
		<-coder.Started()
		second := w.send("coder", "y")
		<-coder.Started()
		queued := w.send("coder", "z") // two work, and there is no third worker

		would, err := w.engine.Underway(t.Context(), "Coder")
		if err != nil || would.Agent != "coder" || would.Delegations != 3 || would.Tasks != 3 {
			t.Fatalf("of coder %+v, %v", would, err)
		}
		younger := w.send("coder", "made after the count")
		stop := orchestrator.Stop{Agent: "coder", Reason: "wrong branch", Actor: "ann", Until: would.At}
		did, err := w.engine.StopAll(t.Context(), stop)
		if err != nil || did.Delegations != 3 || did.Tasks != 3 || did.Landing != 0 {
			t.Fatalf("stopped %+v, %v", did, err)
		}
		if got := <-told; got != `ann stopped all work of coder. The reason: "wrong branch"` {
			t.Errorf("kik was told %q", got)
		}
		w.state(second.ID, orchestrator.Cancelled)
		w.state(queued.ID, orchestrator.Cancelled)
		if d := w.delegation(younger.ID); d.State.Ended() {
			t.Errorf("what nobody had counted is %s", d.State)
		}
		if again, err := w.engine.StopAll(t.Context(), stop); err != nil || again.Delegations != 0 || again.Tasks != 0 {
			t.Errorf("the same stop again: %+v, %v", again, err)
		}

		all, err := w.engine.StopAll(t.Context(), orchestrator.Stop{Reason: "fire drill", Actor: "ann"})
		if err != nil || all.Delegations != 3 || all.Tasks != 3 {
			t.Errorf("everything: %+v, %v", all, err)
		}
		for _, id := range []string{asking.ID, calling.ID, younger.ID} {
			d := w.state(id, orchestrator.Cancelled)
			if !strings.Contains(d.Error.Message, `ann stopped everything that ran. The reason: "fire drill"`) {
				t.Errorf("the error is %+v", d.Error)
			}
			w.cancelled(d, "ann", "fire drill")
		}
		w.cancelled(w.delegation(second.ID), "ann", "wrong branch")
		if d := w.delegation(over.ID); d.State != orchestrator.Completed {
			t.Errorf("what had ended is %s", d.State)
		}
		if left, err := w.engine.Underway(t.Context(), ""); err != nil || left.Delegations != 0 {
			t.Errorf("left: %+v, %v", left, err)
		}
		if _, err := w.engine.Underway(t.Context(), "codr"); orchestrator.CodeOf(err) != "unknown_agent" {
			t.Errorf("an agent that nobody has: %v", err)
		}
	})
}

// cancelled checks that the cancel event of a delegation has its actor and its reason.
func (w *world) cancelled(d orchestrator.Delegation, actor, reason string) {
	w.t.Helper()
	for _, e := range w.events(d.TaskID) {
		if e.Type != event.Cancelled || e.DelegationID != d.ID {
			continue
		}
		var data struct{ Reason string }
		if err := json.Unmarshal(e.Data, &data); err != nil || e.Actor != actor || data.Reason != reason {
			w.t.Errorf("the event is by %s: %s, %v", e.Actor, e.Data, err)
		}
		return
	}
	w.t.Errorf("%s has no event of its cancel", d.ID)
}

// beside is one more node on the database of w, with a clock of its own.
func (w *world) beside(url string, ahead time.Duration) *world {
	w.t.Helper()
	two := *w
	two.data, two.ahead = w.t.TempDir(), new(atomic.Int64)
	two.pass(ahead)
	two.open(url)
	return &two
}

// The clock of one node is a minute ahead, that of another a minute behind. What was made
// before the count is counted and stopped, and what was made after it is not, whoever made
// it and whoever counts.
func TestAStopGoesByOneClock(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	w := newWorld(t, url, specs("coder")...)
	ahead, behind := w.beside(url, time.Minute), w.beside(url, -time.Minute)
	for name, counts := range map[string]*world{"one that is right": w, "one that is ahead": ahead, "one that is behind": behind} {
		t.Run(name, func(t *testing.T) {
			first := []orchestrator.Delegation{ahead.send("coder", "1"), behind.send("coder", "2")}
			would, err := counts.engine.Underway(t.Context(), "coder")
			if err != nil || would.Delegations != 2 || would.Tasks != 2 {
				t.Errorf("counted %+v, %v", would, err)
			}
			since := []orchestrator.Delegation{ahead.send("coder", "3"), behind.send("coder", "4")}
			did, err := counts.engine.StopAll(t.Context(), orchestrator.Stop{Agent: "coder", Actor: "ann", Until: would.At})
			if err != nil || did.Delegations != 2 || did.Tasks != 2 {
				t.Errorf("stopped %+v, %v", did, err)
			}
			for _, d := range first {
				if d = w.delegation(d.ID); d.State != orchestrator.Cancelled {
					t.Errorf("%s was counted and is %s", d.Text, d.State)
				}
			}
			for _, d := range since {
				if d = w.delegation(d.ID); d.State.Ended() {
					t.Errorf("%s was not counted and is %s", d.Text, d.State)
				}
			}
			if all, err := counts.engine.StopAll(t.Context(), orchestrator.Stop{Actor: "ann"}); err != nil || all.Delegations != 2 {
				t.Errorf("all that is left: %+v, %v", all, err)
			}
		})
	}
}
