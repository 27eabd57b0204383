package orchestrator_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm"
	llmodel "gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/guard"
)

// Fifty hops at the same moment, each asking for a tenth of what their caller has: ten
// are taken, the others are refused before they cost anything. The ten live at once and
// each passes its part by its last report, unless all of them together have passed their
// caller's before; at no commit is more taken than the limit and those reports, and in the
// end it is settled exactly (O15, O16, H22).
func TestFiftyHopsAtTheSameMoment(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		const limit, part, report = 10_000, 1000, 550
		w := limited(t, url, func(s *orchestrator.Settings) {
			s.Workers, s.MaxHandoffs, s.Budget.Tokens = 64, 100, amount[int64](limit)
		}, "kik", "coder")
		all := agenttest.NewGate()
		coder := w.script("coder", all.Then(func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			for range 5 { // the second one passes its limit, or the caller's, so no third is made
				if err := host.Usage(ctx, agent.Usage{OutputTokens: report}); err != nil {
					return agent.Outcome{}, err
				}
			}
			return agenttest.Done("too much"), nil
		}))
		w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			var hops sync.WaitGroup
			children := make([]agent.Child, 50)
			for i := range children {
				hops.Go(func() {
					c, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: fmt.Sprint("part ", i), Budget: &budget.Limits{Tokens: amount[int64](part)}})
					if err != nil {
						t.Error(err)
					}
					children[i] = c
				})
			}
			hops.Wait()
			all.Open()
			codes := map[string]int{}
			for _, c := range children {
				if !c.Ended {
					var err error
					if c, err = host.Await(ctx, c.ID); err != nil {
						return agent.Outcome{}, err
					}
				}
				codes[c.State+" "+c.Error.Code]++
			}
			return agenttest.Done(fmt.Sprint(codes)), nil
		})
		root := w.ask(orchestrator.Submission{Agent: "kik", Text: "split it"})
		var most int64
		d := w.until(root.ID, "completed", func(d orchestrator.Delegation) bool {
			a := d.Work.Budget
			taken := a.Spent().Tokens + a.Reserved.Tokens
			if most = max(most, taken); a.Reserved.Tokens < 0 || a.Settled.Tokens < 0 {
				t.Errorf("below 0: %+v", a)
			}
			return d.State == orchestrator.Completed
		})
		refused := "refused " + guard.CodeBudget
		if want := fmt.Sprint(map[string]int{"failed " + agent.CodeBudget: 10, refused: 40}); d.Result.Text != want {
			t.Errorf("kik was told %s, want %s", d.Result.Text, want)
		}
		if over := int64(10 * (2*report - part)); most > limit+over || coder.Runs() != 10 {
			t.Errorf("%d tokens were taken at once of %d; %d runs", most, limit, coder.Runs())
		}
		if a := d.Work.Budget; a.Settled.Tokens <= limit || a.Settled.Tokens > 10*2*report || a.Reserved.Tokens != 0 || a.Used.Tokens != 0 || d.Usage.OutputTokens != a.Settled.Tokens {
			t.Errorf("the account is %+v, the usage %+v", a, d.Usage)
		}
	})
}

// mostMore is how many more goroutines there may be at the end than when a tenth of the children had ended.
const mostMore = 20

// spawner is a model that spawns one agent after another, as many at once as it may, and
// notes the order in which it is told of their ends.
type spawner struct {
	many, limit   int
	spawned, told int
	heard         int // messages that it was shown
	order         []string
	early, late   [2]int64 // goroutines and heap
}

func (s *spawner) Complete(_ context.Context, r llmodel.Request, _ func(agent.Delta)) (llmodel.Response, error) {
	for _, m := range r.Messages[s.heard:] { // what came since it was asked last
		if m.Role == agent.FromUser {
			s.hear(m.Text())
		}
	}
	s.heard = len(r.Messages)
	at := [2]int64{int64(runtime.NumGoroutine()), heap()}
	if s.told >= s.many/10 && s.early[0] == 0 {
		s.early = at
	}
	said := agent.Message{Role: agent.FromModel}
	for ; s.spawned < s.many && s.spawned-s.told < s.limit; s.spawned++ {
		said.Blocks = append(said.Blocks, agent.Block{Type: agent.CallBlock, ID: fmt.Sprint("c", s.spawned), Name: "spawn_agent",
			Input: fmt.Appendf(nil, `{"agent":"worker","task":"n%d"}`, s.spawned)})
	}
	stop := llmodel.StopTools
	if len(said.Blocks) == 0 {
		// The goroutines of the last ones are on their way out; one that stays is seen however long it is waited for.
		for end := time.Now().Add(10 * time.Second); at[0] > s.early[0]+mostMore && time.Now().Before(end); at[0] = int64(runtime.NumGoroutine()) {
			time.Sleep(10 * time.Millisecond)
		}
		stop, s.late = llmodel.StopEnd, at
		said.Blocks = append(said.Blocks, agent.Block{Type: agent.TextBlock, Text: fmt.Sprint("told of ", s.told)})
	}
	return llmodel.Response{Message: said, Stop: stop, Model: "fake/one", Reported: true}, nil
}

// hear notes whose ends an announcement tells, in its order.
func (s *spawner) hear(announcement string) {
	for line := range strings.SplitSeq(announcement, "\n") {
		before, answer, ok := strings.Cut(line, ": did ")
		if ok && strings.HasPrefix(before, "Delegation result from worker for ") { // A26
			s.order, s.told = append(s.order, answer), s.told+1
		}
	}
}

// P44, P46, P47, P54: a model spawns hundreds of agents, five at a time; it is told of
// each once, in the order of their ends, and no goroutine stays.
func TestAModelSpawnsHundreds(t *testing.T) {
	w := newWorld(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), agent.Spec{Name: "boss", Kind: agent.LLM, MaxTurns: 2000}, agent.Spec{Name: "worker"})
	w.config.Repositories = nil
	w.config.Settings.MaxHandoffs, w.config.Settings.Spawn.Children = 1000, 5
	w.engine.SetConfig(w.config)
	s := &spawner{many: 250, limit: 5}
	w.engine.Kinds[agent.LLM] = llm.New(llm.Options{Models: func(agent.Spec) (llmodel.Client, error) { return s, nil }})
	w.script("worker", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		return agenttest.Done("did " + job.Text), nil
	})
	w.start()
	start := time.Now()
	root := w.state(w.sendTo("boss", "go").ID, orchestrator.Completed)
	t.Logf("%d children in %s; goroutines %d → %d, heap %d → %d kB", s.many, time.Since(start), s.early[0], s.late[0], s.early[1]>>10, s.late[1]>>10)
	w.stop()
	tree, err := w.store.Tree(t.Context(), root.TaskID)
	if err != nil || len(tree) != s.many+1 || len(s.order) != s.many || root.Result.Text != fmt.Sprint("told of ", s.many) {
		t.Fatalf("%d delegations, %d told, %q: %v", len(tree), len(s.order), root.Result.Text, err)
	}
	ends := map[string]time.Time{}
	for _, d := range tree {
		ends[d.Text] = *d.EndedAt
	}
	if len(ends) != s.many+1 || !slices.IsSortedFunc(s.order, func(a, b string) int { return ends[a].Compare(ends[b]) }) {
		t.Error("children were not told once each in the order of their ends")
	}
	if s.late[0] > s.early[0]+mostMore {
		t.Errorf("goroutines grew from %d to %d", s.early[0], s.late[0])
	}
}
