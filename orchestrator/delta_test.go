package orchestrator_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/record/event"
)

// modelTurn is a stored turn of a model.
func modelTurn(n int, text string) agent.Turn {
	return agent.Turn{N: n, Model: "test/model", Message: agent.Message{Role: agent.FromModel, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}}
}

// talks streams turns of many small parts and stores each.
func talks(turns, parts int) func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
	return func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		for n := 1; n <= turns; n++ {
			var whole strings.Builder
			for i := range parts {
				s := fmt.Sprintf("%s %d.%d é. ", job.Agent.Name, n, i)
				whole.WriteString(s)
				host.Delta(agent.Delta{Turn: n, Kind: "text", Text: s})
			}
			if err := host.SaveTurn(ctx, modelTurn(n, whole.String()), false); err != nil {
				return agent.Outcome{}, err
			}
			host.Delta(agent.Delta{Turn: n, Kind: "text", Text: "too late"}) // that turn is stored
		}
		return agent.Outcome{Result: &agent.Result{Text: "done"}}, nil
	}
}

// hears gathers what passes by in a task until stop, which returns it.
func (w *world) hears(taskID string) (stop func() []event.Part) {
	l := w.engine.Hub().Listen(taskID, 1<<16)
	return func() []event.Part {
		l.Close()
		var all []event.Part
		for len(l.C) > 0 {
			all = append(all, <-l.C)
		}
		return all
	}
}

// K13: parts of every run of a task pass by in order, merged, and all of a turn before
// the turn is stored. Nothing is left of them afterwards.
func TestPartsPassByInOrderAndBeforeTheirTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("kik", "coder", "tester")...)
	const turns, parts = 5, 400
	ready := make(chan struct{})
	w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		<-ready
		var wg sync.WaitGroup
		var ids [2]string
		for i, to := range []string{"coder", "tester"} {
			wg.Go(func() {
				c, err := host.Delegate(ctx, agent.Hop{To: to, Text: "talk"})
				if err != nil {
					t.Error(err)
				}
				ids[i] = c.ID
			})
		}
		wg.Wait()
		out, err := talks(turns, parts)(ctx, job, host)
		for _, id := range ids {
			if _, err := host.Await(ctx, id); err != nil {
				t.Error(err)
			}
		}
		return out, err
	})
	w.script("coder", talks(turns, parts))
	w.script("tester", talks(turns, parts))
	w.start()
	d := w.send("kik", "talk")
	stop := w.hears(d.TaskID)
	close(ready)
	w.state(d.ID, orchestrator.Completed)
	heard := stop()

	texts, last := map[string]string{}, map[string]int{}
	for _, p := range heard {
		key := p.DelegationID
		if p.Turn < last[key] {
			t.Fatalf("turn %d of %s after turn %d", p.Turn, p.Actor, last[key])
		}
		if p.Turn > last[key] {
			last[key], texts[key] = p.Turn, ""
		}
		if p.Offset != len([]rune(texts[key])) {
			t.Fatalf("%s turn %d: offset %d after %d characters", p.Actor, p.Turn, p.Offset, len([]rune(texts[key])))
		}
		if texts[key] += p.Text; strings.Contains(p.Text, "too late") {
			t.Error("a part of a turn that was stored is shown")
		}
	}
	tree, err := w.store.Tree(t.Context(), d.TaskID)
	if err != nil || len(tree) != 3 {
		t.Fatalf("%d delegations: %v", len(tree), err)
	}
	for _, d := range tree {
		stored, err := w.store.Turns(t.Context(), d.ID, d.Work.Runs)
		if err != nil || len(stored) != turns {
			t.Fatalf("%s has %d turns: %v", d.To, len(stored), err)
		}
		if got := texts[d.ID]; got != stored[turns-1].Message.Text() {
			t.Errorf("%s: the parts of the last turn are %d bytes, the stored text %d", d.To, len(got), len(stored[turns-1].Message.Text()))
		}
	}
	if len(heard) > 3*turns*parts/4 {
		t.Errorf("%d of %d parts passed by one by one", len(heard), 3*turns*parts)
	}
	t.Logf("%d parts became %d", 3*turns*parts, len(heard))
	if left := w.engine.Hub().Drafts(d.TaskID); len(left) != 0 {
		t.Errorf("drafts are left: %v", left)
	}
	for end := time.Now().Add(20 * time.Second); ofRuns() > 0; {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines of runs are left", ofRuns())
		}
		runtime.Gosched()
	}
}

// ofRuns counts the goroutines that work for a run.
func ofRuns() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "orchestrator.(*run)")
}

// A call that broke in the middle takes back what was shown of its turn; who comes
// then gets the second try from its start.
func TestAResetTakesBackWhatWasShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("kik")...)
	said, goOn := make(chan struct{}), make(chan struct{})
	w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		host.Delta(agent.Delta{Turn: 1, Kind: "thinking", Text: "hm"})
		host.Delta(agent.Delta{Turn: 1, Kind: "text", Text: strings.Repeat("first try ", 1000)})
		host.Delta(agent.Delta{Turn: 1, Kind: event.KindReset})
		host.Delta(agent.Delta{Turn: 1, Kind: "text", Text: strings.Repeat("x", 2<<10)})
		close(said)
		<-goOn
		host.Delta(agent.Delta{Turn: 1, Kind: "text", Text: "\xff" + strings.Repeat("n", 300)})
		host.Delta(agent.Delta{Turn: 1, Kind: "tool", Tool: strings.Repeat("t", 5000), Text: "{"})
		return agent.Outcome{Result: &agent.Result{Text: "done"}}, nil
	})
	d := w.send("kik", "talk")
	early := w.hears(d.TaskID)
	w.start()
	<-said
	late := w.engine.Hub().Listen(d.TaskID, 100)
	defer late.Close()
	so := late.SoFar()
	if len(so) != 1 || so[0].Kind != "text" || so[0].Offset != 0 || strings.Trim(so[0].Text, "x") != "" {
		t.Errorf("so far, after the reset: %.200v", so)
	}
	close(goOn)
	w.state(d.ID, orchestrator.Completed)
	var texts []string
	at := -1
	for i, p := range early() {
		if len(p.Text) > 4<<10 || len(p.Tool) > 128 {
			t.Errorf("part %d has %d bytes, its tool %d", i, len(p.Text), len(p.Tool))
		}
		if p.Kind == event.KindReset {
			at, texts = i, nil
		}
		if p.Kind == "text" {
			texts = append(texts, p.Text)
		}
	}
	if got := strings.Join(texts, ""); at < 1 || got != strings.Repeat("x", 2<<10)+"\ufffd"+strings.Repeat("n", 300) {
		t.Errorf("reset at %d, then %d bytes: %.40q", at, len(got), got)
	}
}
