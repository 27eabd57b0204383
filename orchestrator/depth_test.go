package orchestrator_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/guard"
)

// O14, O15: three deep each is granted from its own caller's account, what the last one uses
// is told to every caller while it works, and moves up step by step when it has ended.
func TestEachOfThreeHasItsOwnAccount(t *testing.T) {
	t.Parallel()
	w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(*orchestrator.Settings) {}, "kik", "coder", "tester")
	accounts := func(taskID string) map[string]budget.Account {
		tree, err := w.store.Tree(t.Context(), taskID)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]budget.Account{}
		for _, d := range tree {
			all[d.To] = *d.Work.Budget
		}
		return all
	}
	w.script("kik", told(agent.Hop{To: "coder", Text: "build it", Budget: &budget.Limits{Tokens: amount[int64](4000)}}))
	w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		if err := host.Usage(ctx, agent.Usage{InputTokens: 100}); err != nil {
			return agent.Outcome{}, err
		}
		return told(agent.Hop{To: "tester", Text: "test it"})(ctx, job, host)
	})
	w.script("tester", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		err := host.Usage(ctx, agent.Usage{InputTokens: 500})
		a := accounts(job.TaskID)
		if *a["coder"].Limits.Tokens != 4000 || *a["tester"].Limits.Tokens > 3900 {
			t.Errorf("coder may use %d, and tester %d of it", *a["coder"].Limits.Tokens, *a["tester"].Limits.Tokens)
		}
		if a["kik"].Below.Tokens != 600 || a["coder"].Below.Tokens != 500 || a["coder"].Used.Tokens != 100 {
			t.Errorf("while tester works: %+v", a)
		}
		return agenttest.Done("tested"), err
	})
	root := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go", Budget: &budget.Limits{Tokens: amount[int64](10_000)}}).ID, orchestrator.Completed)
	a := accounts(root.TaskID)
	if a["kik"].Settled.Tokens != 600 || a["coder"].Settled.Tokens != 500 || a["kik"].Reserved.Tokens != 0 || a["coder"].Reserved.Tokens != 0 || a["kik"].Below.Tokens != 0 {
		t.Errorf("in the end: %+v", a)
	}
}

// P16, O2, O3: a model is shown the tools that hand on only where there is another agent
// and its task may make a hand-over.
func TestWhoHasNobodyIsShownNoToolsThatHandOn(t *testing.T) {
	t.Parallel()
	model := func(name string) agent.Spec { return agent.Spec{Name: name, Kind: agent.LLM, Model: "fake/m"} }
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", model("kik"))
	w.config.Settings.Tiers = map[string]budget.Limits{"simple": {Handoffs: amount(0)}}
	w.engine.SetConfig(w.config)
	m := meter(t, func(modeltest.Ask) modeltest.Answer { return modeltest.Say("done") })
	w.models(m)
	w.start()
	hands := func(complexity string) bool {
		w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go", Complexity: complexity}).ID, orchestrator.Completed)
		asks := m.Asks()
		found := 0
		for _, tool := range asks[len(asks)-1].Tools {
			if slices.Contains([]string{"delegate_to_agent", "handoff_to_agent", "spawn_agent", "list_agents"}, tool.Name) {
				found++
			}
		}
		if found != 0 && found != 4 {
			t.Errorf("%d of the four are shown", found)
		}
		return found == 4
	}
	if hands("") {
		t.Error("an agent that is alone is shown them")
	}
	registry, err := agent.NewRegistry([]agent.Spec{model("kik"), model("coder")})
	if err != nil {
		t.Fatal(err)
	}
	w.config.Agents = registry
	w.engine.SetConfig(w.config)
	if !hands("") || hands("simple") {
		t.Error("one of two is not shown them, or is in a simple task")
	}
}

// P21: what the provider of a child's model says is for its caller to read.
func TestAProvidersFailureIsToldToTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"}, agent.Spec{Name: "coder", Kind: agent.LLM, Model: "fake/m"})
	w.models(meter(t, func(a modeltest.Ask) modeltest.Answer {
		switch {
		case a.Conversation == "build it":
			return modeltest.Fail(400, "invalid_request_error", "this model is not for you")
		case a.Turn == 1:
			return modeltest.Use("delegate_to_agent", map[string]any{"agent": "coder", "task": "build it"})
		}
		return modeltest.Say("It said: " + a.Result("delegate_to_agent"))
	}))
	w.start()
	d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, orchestrator.Completed)
	if !strings.Contains(d.Result.Text, agent.CodeModel+": ") || !strings.Contains(d.Result.Text, "this model is not for you") {
		t.Errorf("kik was told %q", d.Result.Text)
	}
}

// K13: what a model below writes passes by its task while it comes, so whoever watches the
// top reads it.
func TestWhatAModelBelowWritesPassesByItsTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"}, agent.Spec{Name: "coder", Kind: agent.LLM, Model: "fake/m"})
	const text = "I build the whole of it, part by part."
	watched := make(chan struct{})
	w.models(meter(t, func(a modeltest.Ask) modeltest.Answer {
		switch {
		case a.Conversation == "build it":
			if !strings.Contains(a.System, "The agent kik handed this task to you") {
				t.Errorf("coder is not told who asks: %s", a.System)
			}
			return modeltest.Answer{Text: text, Split: 4, Until: watched}
		case a.Turn == 1:
			return modeltest.Use("delegate_to_agent", map[string]any{"agent": "coder", "task": "build it"})
		}
		return modeltest.Say("built")
	}))
	w.start()
	root := w.ask(orchestrator.Submission{Agent: "kik", Text: "go"})
	stop := w.hears(root.TaskID)
	close(watched)
	w.state(root.ID, orchestrator.Completed)
	var heard strings.Builder
	for _, p := range stop() {
		if p.Kind == agent.DeltaText && p.Actor == "coder" && p.DelegationID != root.ID {
			heard.WriteString(p.Text)
		}
	}
	if heard.String() != text {
		t.Errorf("heard %q", heard.String())
	}
}

// O10, O11: with capacity: refuse a hop is refused while no slot is free, in words that say
// what to do; with one free it is made.
func TestAFullPoolRefusesWhereItShould(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]string{1: "no_capacity: ", 2: "did it"} {
		w := limited(t, "sqlite:"+t.TempDir()+"/g.db", func(s *orchestrator.Settings) { s.Workers, s.Capacity = workers, guard.Refuse }, "kik", "coder")
		w.script("coder", agenttest.Answer("did it"))
		w.script("kik", told(agent.Hop{To: "coder", Text: "go"}))
		d := w.state(w.ask(orchestrator.Submission{Agent: "kik", Text: "go"}).ID, orchestrator.Completed)
		if !strings.HasPrefix(d.Result.Text, want) {
			t.Errorf("with %d workers kik was told %q", workers, d.Result.Text)
		}
		for _, says := range []string{"no free concurrency slot", "would block for ever", "engine.workers"} {
			if strings.Contains(d.Result.Text, says) != (workers == 1) {
				t.Errorf("with %d workers kik was told %q: %q", workers, d.Result.Text, says)
			}
		}
	}
}
