package orchestrator_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/record/event"
)

// broken makes coder fail three times in a row by a person's own tasks.
func (w *world) broken() orchestrator.Delegation {
	w.t.Helper()
	w.script("coder", agenttest.Fail(agent.CodeExit, "claude: not signed in"))
	var last orchestrator.Delegation
	for range 3 {
		last = w.state(w.ask(orchestrator.Submission{Agent: "coder", Text: "go"}).ID, orchestrator.Failed)
	}
	return last
}

func (w *world) breaker(name string) guard.Breaker {
	w.t.Helper()
	all, err := w.store.BreakerStates(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, b := range all {
		if b.Agent == name {
			return b
		}
	}
	return guard.Breaker{}
}

// H11–H13: three failures in a row open the breaker, in the transaction of the third; the
// refusal says who rests, since when, until when and why. It survives a restart. A
// person's own task passes, and its success closes the breaker.
func TestAnAgentThatFailsRests(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := limited(t, url, func(s *orchestrator.Settings) {
			s.Breaker = orchestrator.BreakerSettings{Failures: 3, Cooldown: time.Hour}
		}, "kik", "coder")
		third := w.broken()
		if w.count(third.TaskID, event.BreakerOpened) != 1 || w.breaker("coder").State != guard.Open {
			t.Fatalf("after three failures: %+v\n%s", w.breaker("coder"), w.history(third.TaskID))
		}
		w.stop()
		w.open(url)
		w.start()
		w.script("kik", told(agent.Hop{To: "coder", Text: "go"}))
		d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, orchestrator.Completed)
		for _, says := range []string{"breaker_open: Agent handoffs temporarily disabled: coder failed 3 times", "more, until", "claude: not signed in"} {
			if !strings.Contains(d.Result.Text, says) {
				t.Errorf("%q lacks %q", d.Result.Text, says)
			}
		}
		w.script("coder", agenttest.Answer("mended"))
		mended := w.state(w.ask(orchestrator.Submission{Agent: "coder", Text: "go"}).ID, orchestrator.Completed)
		if b := w.breaker("coder"); b.Resting() || b.Failures != 0 || w.count(mended.TaskID, event.BreakerClosed) != 1 {
			t.Errorf("after a success: %+v", b)
		}
	})
}

// H14: when the rest is over one hop of many at once is the probe, whose success closes
// the breaker.
func TestOneOfFiftyIsTheProbe(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := limited(t, url, func(s *orchestrator.Settings) {
			s.Workers, s.Breaker = 16, orchestrator.BreakerSettings{Failures: 3, Cooldown: time.Millisecond}
		}, "kik", "coder")
		w.broken()
		probe := agenttest.NewGate()
		coder := w.script("coder", probe.Then(agenttest.Answer("mended")))
		var refused atomic.Int64
		const callers = 50
		w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			c, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: job.TaskID})
			if err != nil {
				return agent.Outcome{}, err
			}
			if c.State == agent.Refused {
				if refused.Add(1) == callers-1 {
					probe.Open()
				}
				return agenttest.Done(c.Error.Code), nil
			}
			c, err = host.Await(ctx, c.ID)
			return agenttest.Done(c.State), err
		})
		var roots []orchestrator.Delegation
		for range callers {
			roots = append(roots, w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}))
		}
		answers := map[string]int{}
		for _, r := range roots {
			answers[w.state(r.ID, orchestrator.Completed).Result.Text]++
		}
		if answers[guard.CodeBreaker] != callers-1 || answers["completed"] != 1 || coder.Runs() != 1 {
			t.Errorf("the callers were told %v, and coder ran %d times", answers, coder.Runs())
		}
		if b := w.breaker("coder"); b.Resting() {
			t.Errorf("after the probe: %+v", b)
		}
	})
}

// H14: a probe that people cancel says nothing of the agent: the next hop is the probe.
func TestACancelledProbeIsGivenToTheNext(t *testing.T) {
	t.Parallel()
	w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(s *orchestrator.Settings) {
		s.Breaker = orchestrator.BreakerSettings{Failures: 3, Cooldown: time.Millisecond}
	}, "kik", "coder")
	w.broken()
	coder := w.script("coder", agenttest.NewGate().Then(agenttest.Answer("never")))
	w.script("kik", told(agent.Hop{To: "coder", Text: "go"}))
	root := w.ask(orchestrator.Submission{Agent: "kik", Text: "go"})
	<-coder.Started()
	if b := w.breaker("coder"); b.State != guard.HalfOpen || b.Probe == "" {
		t.Fatalf("while the probe works: %+v", b)
	}
	if _, err := w.engine.Cancel(t.Context(), root.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	if b := w.breaker("coder"); b.State != guard.HalfOpen || b.Probe != "" {
		t.Fatalf("after the probe was cancelled: %+v", b)
	}
	w.script("coder", agenttest.Answer("mended"))
	d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, orchestrator.Completed)
	if d.Result.Text != "mended" {
		t.Errorf("the next hop got %q", d.Result.Text)
	}
}

// H14, H18: a hand-over that people are asked about first holds no probe while they think:
// others try meanwhile, and it is the probe only when its agent begins to work.
func TestAQuestionHoldsNoProbe(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik"}, agent.Spec{Name: "coder", AskFirst: true, Timeout: time.Hour})
		w.config.Settings.Breaker = orchestrator.BreakerSettings{Failures: 3, Cooldown: time.Millisecond}
		w.engine.SetConfig(w.config)
		w.start()
		w.broken()
		w.script("kik", agenttest.HandOn("coder"))
		var asked [2]approval.Request
		for i := range asked { // the second is not refused for the first one's question
			asked[i] = w.request(w.ask(orchestrator.Submission{Agent: "kik", Text: "go " + strings.Repeat("on ", i)}).TaskID, 1)
		}
		if b := w.breaker("coder"); b.State != guard.Open || b.Probe != "" {
			t.Fatalf("while people think: %+v", b)
		}
		gate := agenttest.NewGate()
		coder := w.script("coder", gate.Then(agenttest.Answer("mended")))
		w.approve(asked[0])
		<-coder.Started()
		if b := w.breaker("coder"); b.State != guard.HalfOpen || b.Probe != asked[0].DelegationID {
			t.Fatalf("while the first works: %+v", b)
		}
		w.approve(asked[1]) // people decided: it works beside the probe and does not replace it
		<-coder.Started()
		if b := w.breaker("coder"); b.Probe != asked[0].DelegationID {
			t.Fatalf("while both work: %+v", b)
		}
		gate.Open()
		for _, r := range asked {
			w.state(r.DelegationID, orchestrator.Completed)
		}
		if b := w.breaker("coder"); b.Resting() {
			t.Errorf("after the probe: %+v", b)
		}
	})
}

// A dry run shows every guard in order, with budget and breaker, and takes nothing.
func TestADryRunShowsEveryGuard(t *testing.T) {
	t.Parallel()
	w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(s *orchestrator.Settings) {
		s.Breaker = orchestrator.BreakerSettings{Failures: 3, Cooldown: time.Hour}
		s.Budget.Tokens = amount[int64](150_000)
	}, "kik", "coder")
	verdicts, refused, err := w.engine.Check(t.Context(), "kik", "coder", "")
	if err != nil || refused != nil || len(verdicts) != len(guard.Names()) {
		t.Fatalf("%+v, %+v, %v", verdicts, refused, err)
	}
	said := map[string]string{}
	for _, v := range verdicts {
		said[v.Guard] = v.Message
	}
	if said["budget"] != "left: 150,000 of 150,000 tokens" || said["breaker"] != "closed" {
		t.Errorf("%v", said)
	}
	last := w.broken()
	verdicts, refused, err = w.engine.Check(t.Context(), "kik", "coder", last.TaskID)
	if err != nil || refused == nil || refused.Code != guard.CodeBreaker || len(verdicts) != len(guard.Names()) || !verdicts[len(verdicts)-1].Skipped {
		t.Errorf("%+v, %+v, %v", verdicts, refused, err)
	}
}
