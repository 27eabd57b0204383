package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

func amount[T any](v T) *T { return &v }

// limited is a world without a repository, with other settings, and started.
func limited(t *testing.T, url string, change func(*orchestrator.Settings), names ...string) *world {
	w := newWorld(t, url, specs(names...)...)
	change(&w.config.Settings)
	w.engine.SetConfig(w.config)
	w.start()
	return w
}

// ask sends a task without a repository.
func (w *world) ask(s orchestrator.Submission) orchestrator.Delegation {
	w.t.Helper()
	s.Via, s.RequesterID, s.Requester = origin.From(origin.Web), w.ann.ID, "ann"
	_, root, _, err := w.engine.Submit(w.t.Context(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	return root
}

// uses is a script that reports its use and answers.
func uses(tokens int64) agenttest.Script {
	return func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		if err := host.Usage(ctx, agent.Usage{InputTokens: tokens / 2, OutputTokens: tokens - tokens/2}); err != nil {
			return agent.Outcome{}, err
		}
		return agenttest.Done("done"), nil
	}
}

// told is a script that makes hops one after the other and answers with what came back.
func told(hops ...agent.Hop) agenttest.Script {
	return func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		var all []string
		for _, h := range hops {
			c, err := host.Delegate(ctx, h)
			if err == nil && !c.Ended {
				c, err = host.Await(ctx, c.ID)
			}
			if err != nil {
				return agent.Outcome{}, err
			}
			if c.Error != nil {
				all = append(all, c.Error.Code+": "+c.Error.Message)
			} else {
				all = append(all, c.Result.Text)
			}
		}
		return agenttest.Done(strings.Join(all, "\n")), nil
	}
}

// Fifty children at once, each reserving from a caller with room for ten (O15, H22, X6a): ten
// run, the others are refused before they cost anything, and it is settled exactly.
func TestFiftyChildrenShareWhatTenMayUse(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := limited(t, url, func(s *orchestrator.Settings) { s.MaxHandoffs = 100; s.Budget.Tokens = amount[int64](10_000) }, "kik", "coder")
		w.script("coder", uses(900))
		w.script("kik", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			if len(job.Children) == 0 {
				var p agent.Park
				for i := range 50 {
					p.Hops = append(p.Hops, agent.Hop{Ref: fmt.Sprint(i), To: "coder", Text: fmt.Sprintf("part %d", i), Budget: &budget.Limits{Tokens: amount[int64](1000)}})
				}
				return agent.Outcome{Park: &p}, nil
			}
			codes := map[string]int{}
			for _, c := range job.Children {
				codes[c.State]++
				if c.State == agent.Refused && c.Error.Code == guard.CodeBudget && strings.HasPrefix(c.Error.Message, "Token budget exceeded: 0 tokens are left of 10,000; kik → coder was refused.") {
					codes["as it should be"]++
				}
			}
			return agenttest.Done(fmt.Sprint(codes)), nil
		})
		d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "split it"}).ID, orchestrator.Completed)
		if want := "map[as it should be:40 completed:10 refused:40]"; d.Result.Text != want {
			t.Errorf("kik was told %s, want %s", d.Result.Text, want)
		}
		a := d.Work.Budget
		if a.Settled.Tokens != 9000 || a.Reserved.Tokens != 0 || a.Used.Tokens != 0 || d.Usage.InputTokens+d.Usage.OutputTokens != 9000 {
			t.Errorf("the account is %+v, the usage %+v", a, d.Usage)
		}
	})
}

// What nobody asked for is shared: a second hop while the first child lives gets its
// part, and the budget is not passed (O15).
func TestASecondHopTakesItsShare(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := limited(t, url, func(s *orchestrator.Settings) { s.Budget.Tokens = amount[int64](10_000) }, "kik", "coder", "tester", "helper")
		gate := agenttest.NewGate()
		w.script("coder", gate.Then(uses(100)))
		w.script("helper", uses(200))
		w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			first, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: "a"})
			if err != nil {
				return agent.Outcome{}, err
			}
			second, err := host.Delegate(ctx, agent.Hop{To: "helper", Text: "b"})
			if err != nil {
				return agent.Outcome{}, err
			}
			if second.State == agent.Refused {
				return agent.Outcome{}, second.Error
			}
			gate.Open()
			for _, c := range []agent.Child{first, second} {
				if _, err := host.Await(ctx, c.ID); err != nil {
					return agent.Outcome{}, err
				}
			}
			return agenttest.Done("both"), nil
		})
		d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, orchestrator.Completed)
		tree, err := w.store.Tree(t.Context(), d.TaskID)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range tree[1:] {
			if got := *c.Work.Budget.Limits.Tokens; got != 5000 {
				t.Errorf("%s could use %d", c.To, got)
			}
		}
		if a := d.Work.Budget; a.Settled.Tokens != 300 || a.Reserved.Tokens != 0 || len(a.Lent) != 0 {
			t.Errorf("the account is %+v", a)
		}
	})
}

// O16: strictly more than the limit ends the run; the limit itself does not (X6).
func TestARunEndsOnceItUsedMore(t *testing.T) {
	t.Parallel()
	w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(*orchestrator.Settings) {}, "kik")
	for tokens, want := range map[int64]orchestrator.State{1000: orchestrator.Completed, 1001: orchestrator.Failed} {
		w.script("kik", uses(tokens))
		d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go", Budget: &budget.Limits{Tokens: amount[int64](1000)}}).ID, want)
		if want == orchestrator.Failed && (d.Error.Code != agent.CodeBudget || !strings.HasPrefix(d.Error.Message, "Token budget exceeded: kik used 1,001 of 1,000 tokens.")) {
			t.Errorf("it failed with %+v", d.Error)
		}
	}
}

// O17, O18, X6a: what passes the budget is stored first: the model's turn, then the results of
// its calls, each with its id; only then the run ends.
func TestResultsAreRecordedBeforeTheBudgetEndsTheRun(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := limited(t, url, func(*orchestrator.Settings) {}, "kik")
		w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			call := agent.Block{Type: agent.CallBlock, ID: "c1", Name: "search", Input: []byte(`{}`)}
			err := host.SaveTurn(ctx, agent.Turn{N: 1, Message: agent.Message{Role: agent.FromModel, Blocks: []agent.Block{call}}, Usage: agent.Usage{InputTokens: 2000}}, false)
			if err != nil {
				return agent.Outcome{}, fmt.Errorf("the model's turn was refused: %w", err)
			}
			result := agent.Block{Type: agent.AnswerBlock, ID: "c1", Name: "search", Text: "found"}
			return agenttest.Done("it went on"), host.SaveTurn(ctx, agent.Turn{N: 2, Message: agent.Message{Role: agent.FromTools, Blocks: []agent.Block{result}}}, false)
		})
		d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go", Budget: &budget.Limits{Tokens: amount[int64](1000)}}).ID, orchestrator.Failed)
		turns, err := w.store.Turns(t.Context(), d.ID, 0)
		if err != nil || len(turns) != 2 || turns[1].Message.Blocks[0].ID != "c1" || d.Error.Code != agent.CodeBudget {
			t.Errorf("%d turns, %v, %+v", len(turns), err, d.Error)
		}
	})
}

// The running time of a task is a budget, too; waiting does not count.
func TestTheBudgetOfTimeEndsARun(t *testing.T) {
	t.Parallel()
	w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(*orchestrator.Settings) {}, "kik")
	w.script("kik", func(ctx context.Context, _ agent.Job, _ agent.Host) (agent.Outcome, error) {
		<-ctx.Done()
		return agent.Outcome{}, ctx.Err()
	})
	d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go", Budget: &budget.Limits{Time: amount(20 * time.Millisecond)}}).ID, orchestrator.Failed)
	if d.Error.Code != agent.CodeBudget || !strings.HasPrefix(d.Error.Message, "Time budget exceeded") {
		t.Errorf("it failed with %+v", d.Error)
	}
}

// H19–H24: a tier limits hand-overs and agents; the classifier chooses where nobody did.
func TestTiers(t *testing.T) {
	t.Parallel()
	w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(s *orchestrator.Settings) {
		s.Tiers = map[string]budget.Limits{"simple": {Handoffs: amount(0), Agents: amount(1), Tokens: amount[int64](10_000)}, "medium": {Handoffs: amount(2), Agents: amount(2)}}
		s.Classify = true
	}, "kik", "coder", "tester")
	w.script("coder", agenttest.Answer("coded"))
	w.script("tester", agenttest.Answer("tested"))
	w.script("kik", told(agent.Hop{To: "coder", Text: "a"}, agent.Hop{To: "tester", Text: "b"}, agent.Hop{To: "coder", Text: "c"}, agent.Hop{To: "coder", Text: "d"}))
	simple := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "What is this?"}).ID, orchestrator.Completed)
	if n := strings.Count(simple.Result.Text, "budget_exceeded: Handoff limit reached: the task has made 0 of 0"); n != 4 {
		t.Errorf("a simple task: %s", simple.Result.Text)
	}
	if h := w.history(simple.TaskID); !strings.Contains(h, `"complexity":"simple"`) || !strings.Contains(h, `"why":"short`) {
		t.Errorf("the first event does not explain the tier:\n%s", h)
	}
	// H19: one agent, and 10,000 tokens, which may be used up and not passed.
	if a := simple.Work.Budget; a == nil || *a.Limits.Agents != 1 || *a.Limits.Handoffs != 0 {
		t.Errorf("a simple task has the limits %+v", a)
	}
	for tokens, want := range map[int64]orchestrator.State{10_000: orchestrator.Completed, 10_001: orchestrator.Failed} {
		w.script("coder", uses(tokens))
		d := w.state(w.ask(orchestrator.Submission{Agent: "coder", Text: "What is this?"}).ID, want)
		if want == orchestrator.Failed && !strings.HasPrefix(d.Error.Message, "Token budget exceeded: coder used 10,001 of 10,000 tokens") {
			t.Errorf("it failed with %+v", d.Error)
		}
	}
	w.script("coder", agenttest.Answer("coded"))
	medium := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "What is this?", Complexity: "medium"}).ID, orchestrator.Completed)
	got := strings.Split(medium.Result.Text, "\n")
	if got[0] != "coded" || !strings.HasPrefix(got[1], "budget_exceeded: Agent limit reached: 2 of 2") || got[2] != "coded" || !strings.HasPrefix(got[3], "budget_exceeded: Handoff limit reached: the task has made 2 of 2") {
		t.Errorf("a medium task: %q", got)
	}
}

// H15–H17: the same hand-over with the same content is refused; another text passes, and
// so does the same one when people had the task run again.
func TestTheSameHandoverAgainIsRefused(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := limited(t, url, func(*orchestrator.Settings) {}, "kik", "coder")
		coder := w.script("coder", agenttest.Answer("done"))
		again := agent.Hop{To: "coder", Text: "fix it", Context: map[string]string{"b": "2", "a": "1"}}
		w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			out, err := told(again, again, agent.Hop{To: "coder", Text: "fix it better"})(ctx, job, host)
			if err == nil && coder.Runs() == 2 {
				err = agent.Fail("exit", "%s", out.Result.Text)
			}
			return out, err
		})
		root := w.ask(orchestrator.Submission{Agent: "kik", Text: "go"})
		d := w.state(root.ID, orchestrator.Failed)
		got := strings.Split(d.Error.Message, "\n")
		if got[0] != "done" || !strings.HasPrefix(got[1], "repeat: Circular handoff: kik → coder") || got[2] != "done" {
			t.Errorf("kik was told %q", got)
		}
		if w.count(root.TaskID, event.DelegationRefused) != 1 {
			t.Error(w.history(root.TaskID))
		}
		// H16: what was made is on record with its hash and its time; what was refused is not.
		tree, err := w.store.Tree(t.Context(), root.TaskID)
		if err != nil || len(tree) != 3 {
			t.Fatalf("%d delegations are on record, want 3: %v", len(tree), err)
		}
		for i, made := range tree[1:] {
			if made.From != "kik" || made.To != "coder" || made.ContextHash == "" || made.CreatedAt.Before(tree[i].CreatedAt) || made.CreatedAt.After(*d.EndedAt) {
				t.Errorf("the log has %s → %s, hash %q, at %s", made.From, made.To, made.ContextHash, made.CreatedAt)
			}
		}
		if tree[1].ContextHash == tree[2].ContextHash {
			t.Errorf("two texts have the hash %s", tree[1].ContextHash)
		}
		if _, err := w.engine.Retry(t.Context(), root.ID, w.ann); err != nil {
			t.Fatal(err)
		}
		d = w.state(root.ID, orchestrator.Completed)
		if !strings.HasPrefix(d.Result.Text, "done\nrepeat: ") || coder.Runs() != 4 {
			t.Errorf("after the retry: %q, %d runs", d.Result.Text, coder.Runs())
		}
	})
}

// H26, X2: where cycles are bounded an agent may be handed its own work back, as often as the
// task has hand-overs (H9), but not by a hand-over that is among the last three (H15).
func TestABoundedCycleMayReturn(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := limited(t, url, func(s *orchestrator.Settings) { s.Cycle, s.MaxDepth = guard.Bounded, 9 }, "kik", "coder", "tester", "writer")
		for _, c := range []struct {
			team  []string // each hands to the next, the last to the first
			says  string
			times []int // how often each ran
		}{
			{[]string{"kik", "coder"}, "cycle: Circular handoff: kik → coder was made within the last 3", []int{2, 1}},
			{[]string{"kik", "coder", "tester", "writer"}, "max_handoffs: Maximum handoffs reached", []int{2, 2, 1, 1}},
		} {
			var all []*agenttest.Scripted
			for i, name := range c.team {
				all = append(all, w.script(name, agenttest.HandOn(c.team[(i+1)%len(c.team)])))
			}
			d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, orchestrator.Completed)
			if !strings.HasPrefix(d.Result.Text, c.says) {
				t.Errorf("%v: kik was told %q, want %q", c.team, d.Result.Text, c.says)
			}
			for i, s := range all {
				if s.Runs() != c.times[i] {
					t.Errorf("of %v %s ran %d times, want %d", c.team, c.team[i], s.Runs(), c.times[i])
				}
			}
		}
	})
}

// O8, K9: A→B→A stops at the first attempt: neither runs again for it.
func TestAReturnCostsNoRun(t *testing.T) {
	t.Parallel()
	w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(*orchestrator.Settings) {}, "kik", "coder")
	kik := w.script("kik", told(agent.Hop{To: "coder", Text: "go"}))
	coder := w.script("coder", told(agent.Hop{To: "KIK", Text: "back to you"}))
	d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, orchestrator.Completed)
	if !strings.HasPrefix(d.Result.Text, "cycle: Agent 'kik' already in delegation chain: kik → coder → kik") || kik.Runs() != 1 || coder.Runs() != 1 {
		t.Errorf("%q after %d and %d runs", d.Result.Text, kik.Runs(), coder.Runs())
	}
}
