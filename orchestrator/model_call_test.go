package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm"
	llmodel "gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/providers"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/guard"
)

// metered is a service of models that counts what it has answered.
type metered struct {
	*modeltest.Server
	spent atomic.Int64
}

// meter starts a service that says what script does, and counts.
func meter(t testing.TB, script modeltest.Script) *metered {
	m := &metered{}
	m.Server = modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		answer := script(a)
		if answer.Usage != nil {
			m.spent.Add(answer.Usage.Input + answer.Usage.Output)
		}
		return answer
	})
	t.Cleanup(m.Close)
	return m
}

// models makes a world whose model agents ask the service over its wire.
func (w *world) models(m *metered) {
	w.t.Helper()
	set, err := providers.New([]providers.Provider{{Name: "fake", Kind: providers.Anthropic, Keys: []string{"k"}, BaseURL: m.Anthropic()}}, providers.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.engine.Kinds[agent.LLM] = llm.New(llm.Options{Models: func(s agent.Spec) (llmodel.Client, error) { return set.Client(s.Model, s.Fallbacks...) }})
}

// split is a model that hands n parts to coder in one turn and then says how they ended.
func split(n int, costs modeltest.Usage) modeltest.Script {
	return func(a modeltest.Ask) modeltest.Answer {
		switch {
		case !strings.HasPrefix(a.Conversation, "split"):
			return modeltest.Answer{Text: "done", Usage: &costs}
		case a.Turn > 1:
			return modeltest.Answer{Text: "all told", Usage: &modeltest.Usage{Input: 100, Output: 10}}
		}
		answer := modeltest.Answer{Usage: &modeltest.Usage{Input: 100, Output: 10}}
		for i := range n {
			answer.Calls = append(answer.Calls, modeltest.ToolCall("delegate_to_agent", map[string]any{"agent": "coder", "task": fmt.Sprint("part ", i)}))
		}
		return answer
	}
}

// O15, O16, X6a: a task uses its limit and at most the calls that were in flight when it was
// reached, with one worker and with sixteen, also where each call costs far more than could be
// told before it. What the models answered is what is recorded.
func TestFiftyChildrenUseTheLimitAndTheCallsInFlight(t *testing.T) {
	const limit = 100_000
	for _, c := range []struct{ children, workers, input int64 }{{20, 1, 10_000}, {50, 1, 10_000}, {50, 16, 10_000}, {50, 1, 30_000}, {50, 16, 30_000}} {
		t.Run(fmt.Sprintf("%d children, %d workers, %d tokens a call", c.children, c.workers, c.input), func(t *testing.T) {
			databases(t, func(t *testing.T, url string) {
				w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"}, agent.Spec{Name: "coder", Kind: agent.LLM, Model: "fake/m"})
				w.config.Settings.Workers, w.config.Settings.MaxHandoffs, w.config.Settings.Budget.Tokens = int(c.workers), 100, amount[int64](limit)
				w.engine.SetConfig(w.config)
				m := meter(t, split(int(c.children), modeltest.Usage{Input: c.input, Output: 500}))
				w.models(m)
				w.start()
				d := w.until(w.ask(orchestrator.Submission{Agent: "kik", Text: "split it"}).ID, "ended", func(d orchestrator.Delegation) bool { return d.State.Ended() })
				spent, each := m.spent.Load(), c.input+500
				if most := limit + c.workers*each; spent > most || spent < limit-2*each {
					t.Errorf("%d tokens were spent under a limit of %d with %d workers", spent, limit, c.workers)
				}
				if got := d.Usage.InputTokens + d.Usage.OutputTokens; got != spent {
					t.Errorf("%d tokens are recorded, %d were answered", got, spent)
				}
				tree, err := w.store.Tree(t.Context(), d.TaskID)
				if err != nil {
					t.Fatal(err)
				}
				for _, child := range tree[1:] {
					if child.State == orchestrator.Failed && child.Error.Code != agent.CodeBudget {
						t.Errorf("a child failed with %+v", child.Error)
					}
				}
				if a := d.Work.Budget; a.Held.Tokens != 0 || a.Below.Tokens != 0 || a.Reserved.Tokens != 0 {
					t.Errorf("something stayed reserved: %+v", a)
				}
			})
		})
	}
}

// Programs say afterwards what they used. None is started once those whom it works for have
// used up their budget, so it is passed by what was at work at that moment.
func TestFiftyProgramsUseTheLimitAndThoseAtWork(t *testing.T) {
	const limit, each, workers = 100_000, 10_500, 4
	databases(t, func(t *testing.T, url string) {
		w := limited(t, url, func(s *orchestrator.Settings) {
			s.Workers, s.MaxHandoffs, s.Budget.Tokens = workers, 100, amount[int64](limit)
		}, "kik", "coder")
		coder := w.script("coder", uses(each))
		w.script("kik", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			if len(job.Children) > 0 {
				return agenttest.Done("told"), nil
			}
			var p agent.Park
			for i := range 50 {
				p.Hops = append(p.Hops, agent.Hop{Ref: fmt.Sprint(i), To: "coder", Text: fmt.Sprintf("part %d", i)})
			}
			return agent.Outcome{Park: &p}, nil
		})
		d := w.until(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, "ended", func(d orchestrator.Delegation) bool { return d.State.Ended() })
		spent := d.Usage.InputTokens + d.Usage.OutputTokens
		if spent > limit+workers*each || spent < limit || spent != int64(coder.Runs())*each {
			t.Errorf("%d tokens of %d by %d runs", spent, limit, coder.Runs())
		}
	})
}

// No crumb: a reservation that would not pay for one call is a refusal that says so, and an
// answer is no longer than what is left.
func TestAReservationPaysForACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"}, agent.Spec{Name: "coder", Kind: agent.LLM, Model: "fake/m"})
	m := meter(t, func(a modeltest.Ask) modeltest.Answer {
		switch {
		case !strings.HasPrefix(a.Conversation, "split"):
			return modeltest.Answer{Text: "done", Usage: &modeltest.Usage{Input: 10, Output: 1}}
		case a.Turn > 1:
			return modeltest.Answer{Text: a.Result("delegate_to_agent"), Usage: &modeltest.Usage{Input: 10, Output: 1}}
		}
		return modeltest.Answer{Calls: []modeltest.Call{modeltest.ToolCall("delegate_to_agent", map[string]any{"agent": "coder", "task": "a part", "budget": map[string]any{"tokens": 300}})},
			Usage: &modeltest.Usage{Input: 10, Output: 1}}
	})
	w.models(m)
	w.start()
	d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "split it"}).ID, orchestrator.Completed)
	if !strings.Contains(d.Result.Text, guard.CodeBudget) || !strings.Contains(d.Result.Text, "one call of coder may cost") || m.Asked("a part") != 0 {
		t.Errorf("kik was told %q", d.Result.Text)
	}
	w.config.Settings.Budget.Tokens = amount[int64](5000)
	w.engine.SetConfig(w.config)
	d = w.state(w.ask(orchestrator.Submission{Agent: "coder", Text: "short"}).ID, orchestrator.Completed)
	asks := m.Asks()
	if body := string(asks[len(asks)-1].Body); !strings.Contains(body, `"max_tokens":`) || strings.Contains(body, `"max_tokens":8192`) {
		t.Errorf("an answer could be longer than what is left of %d: %s", *d.Work.Budget.Limits.Tokens, body)
	}
}

// A sibling that is still at work has used up what the task may use: the next call of a run
// that has enough of its own is refused, and it says whose budget it was.
func TestACallIsCheckedAgainstTheWholeLine(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		model := func(name string) agent.Spec { return agent.Spec{Name: name, Kind: agent.LLM, Model: "fake/m"} }
		w := newWorld(t, url, model("kik"), model("small"), agent.Spec{Name: "big"})
		w.config.Settings.Budget.Tokens = amount[int64](100_000)
		w.engine.SetConfig(w.config)
		begun, spent, end := make(chan struct{}), make(chan struct{}), agenttest.NewGate()
		hand := func(to, text string) modeltest.Call {
			return modeltest.ToolCall("delegate_to_agent", map[string]any{"agent": to, "task": text})
		}
		little := &modeltest.Usage{Input: 90, Output: 10}
		m := meter(t, func(a modeltest.Ask) modeltest.Answer {
			switch {
			case a.Conversation == "little" && a.Turn == 1:
				close(begun)
				return modeltest.Answer{Calls: []modeltest.Call{modeltest.ToolCall("list_agents", map[string]any{})}, Usage: little, Until: spent}
			case a.Conversation == "split" && a.Turn == 1:
				return modeltest.Answer{Calls: []modeltest.Call{hand("big", "much"), hand("small", "little")}, Usage: little}
			}
			return modeltest.Answer{Text: "done", Usage: little}
		})
		w.models(m)
		w.script("big", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			<-begun
			if err := host.Usage(ctx, agent.Usage{InputTokens: 101_000}); err == nil {
				t.Error("it may go on")
			}
			close(spent)
			return end.Then(agenttest.Answer("slept"))(ctx, job, host)
		})
		w.start()
		root := w.ask(orchestrator.Submission{Agent: "kik", Text: "split"})
		var small orchestrator.Delegation
		w.until(root.ID, "handed on", func(orchestrator.Delegation) bool {
			tree, err := w.store.Tree(t.Context(), root.TaskID)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range tree {
				if d.To == "small" {
					small = d
				}
			}
			return small.State.Ended()
		})
		if small.State != orchestrator.Failed || small.Error.Code != agent.CodeBudget || !strings.HasPrefix(small.Error.Message, "Token budget exceeded: kik used 101,") || m.Asked("little") != 1 {
			t.Errorf("it was asked %d times and is %s: %+v", m.Asked("little"), small.State, small.Error)
		}
		end.Open()
		w.until(root.ID, "ended", func(d orchestrator.Delegation) bool { return d.State.Ended() })
	})
}
