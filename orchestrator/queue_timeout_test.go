package orchestrator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/record/event"
)

// A34: what nobody took up in time fails with no_ack, and its caller hears it as any failure;
// what has begun, what people hold and what was made just now goes on. Off, it waits.
func TestWhatNobodyTakesUpInTimeFails(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "boss", Kind: agent.LLM}, agent.Spec{Name: "worker"})
		w.config.Settings.Workers, w.config.Settings.Lease, w.config.Settings.Breaker = 1, 240*time.Hour, orchestrator.BreakerSettings{Failures: 1, Cooldown: time.Hour}
		w.engine.SetConfig(w.config)
		gates := map[string]*agenttest.Gate{"first": agenttest.NewGate(), "one": agenttest.NewGate()}
		worker := w.script("worker", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			done := agenttest.Answer("did " + job.Text)
			if gate := gates[job.Text]; gate != nil {
				done = gate.Then(done)
			}
			return done(ctx, job, host)
		})
		w.script("boss", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if len(job.Children) == 0 {
				return agent.Outcome{Park: &agent.Park{Hops: []agent.Hop{{Ref: "1", To: "worker", Text: "one"}, {Ref: "2", To: "worker", Text: "two"}}}}, nil
			}
			for _, c := range job.Children {
				if c.Error != nil {
					return agenttest.Done(c.Error.Error()), nil
				}
			}
			return agenttest.Done("both are done"), nil
		})
		w.start()
		first := w.sendTo("worker", "first")
		<-worker.Started()
		plain, held := w.sendTo("worker", "plain"), w.sendTo("worker", "held")
		if _, err := w.engine.Pause(t.Context(), held.ID, "ann"); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
		if d := w.delegation(plain.ID); d.State != orchestrator.Queued {
			t.Fatalf("without the setting it is %s", d.State)
		}
		w.config.Settings.QueueTimeout = 2 * time.Minute
		w.engine.SetConfig(w.config)
		d := w.state(plain.ID, orchestrator.Failed)
		if d.Error.Code != agent.CodeNoAck || !strings.Contains(d.Error.Message, "Nobody took this up within 2m0s") || w.count(d.TaskID, event.Failed) != 1 {
			t.Errorf("it failed with %+v\n%s", d.Error, w.history(d.TaskID))
		}
		if _, err := w.engine.Unpause(t.Context(), held.ID, "ann"); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		fresh := w.sendTo("worker", "fresh")
		gates["first"].Open()
		for _, id := range []string{first.ID, held.ID, fresh.ID} {
			w.state(id, orchestrator.Completed)
		}

		// A caller waits for two, and there is one worker.
		root := w.sendTo("boss", "go")
		for job := <-worker.Started(); job.Text != "one"; {
			job = <-worker.Started()
		}
		w.pass(3 * time.Minute)
		tree, err := w.store.Tree(t.Context(), root.TaskID)
		if err != nil || len(tree) != 3 {
			t.Fatalf("%v: %s", err, w.history(root.TaskID))
		}
		w.state(tree[2].ID, orchestrator.Failed)
		gates["one"].Open()
		if d := w.state(root.ID, orchestrator.Completed); !strings.HasPrefix(d.Result.Text, "no_ack: Nobody took this up within 2m0s") {
			t.Errorf("boss was told %q", d.Result.Text)
		}
	})
}
