package orchestrator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/guard"
)

const handedKey = "AKIAIOSFODNN7EXAMPLE"

// handsOver writes a file and hands the work over; what it does after that counts for
// nothing.
func handsOver(to string) agenttest.Script {
	return func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		if err := writeFile(job.Dir, "first.txt", "coder\n"); err != nil {
			return agent.Outcome{}, err
		}
		if err := host.Usage(ctx, agent.Usage{InputTokens: 5, OutputTokens: 2}); err != nil {
			return agent.Outcome{}, err
		}
		path := "docs/plan.md"
		c, err := host.Delegate(ctx, agent.Hop{To: to, Text: "go on", Final: true, Context: map[string]string{"note": "key " + handedKey, "completed": "the plan"},
			Handover: &agent.Handover{Update: agent.HandoverUpdate{Artifacts: map[string]*string{"Plan": &path, "Report": nil},
				Context:       agent.HandoverContext{ArtifactsCreated: []string{"Notes"}},
				WorkflowState: agent.HandoverState{Phase: "plan", RemainingSteps: []string{"build"}}}}})
		switch {
		case err != nil:
			return agent.Outcome{}, err
		case c.State == agent.Refused:
			return agenttest.Done(c.Error.Code + ": " + c.Error.Message), nil
		}
		<-ctx.Done()
		if context.Cause(ctx) != agent.ErrHandedOver {
			return agent.Outcome{}, context.Cause(ctx)
		}
		return agenttest.Done("too late"), nil
	}
}

// A program hands the rest of its work over: it is ended, its row waits alone, and it ends
// with what the other agent answered and with both changes, also where the node was
// stopped in between. The other agent has the command object as its sender meant it.
func TestAProgramHandsItsWorkOver(t *testing.T) {
	for restarts, kinds := range map[bool]func(*testing.T, func(*testing.T, string)){false: either, true: databases} {
		t.Run(fmt.Sprint("restarts ", restarts), func(t *testing.T) {
			kinds(t, func(t *testing.T, url string) {
				w := newWorld(t, url, specs("coder", "builder")...)
				coder := w.script("coder", handsOver("builder"))
				gate := agenttest.NewGate()
				builder := w.script("builder", gate.Then(func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
					return agenttest.Done("built"), writeFile(job.Dir, "second.txt", "builder\n")
				}))
				w.start()
				root := w.send("coder", "build it")
				<-builder.Started()
				w.until(root.ID, "waiting alone", func(d orchestrator.Delegation) bool {
					return d.State == orchestrator.Waiting && d.Holder == "" && !d.Work.ProcessWait
				})
				if restarts {
					w.stop()
					w.open(url)
					w.start()
				}
				gate.Open()
				r := w.request(root.TaskID, 1)
				var files []string
				for _, f := range r.Revision.Files {
					files = append(files, f.Path)
				}
				if r.DelegationID != root.ID || !slices.Equal(files, []string{"first.txt", "second.txt"}) || coder.Runs() != 1 {
					t.Errorf("asked about %v of %s, after %d runs of coder\n%s", files, r.DelegationID, coder.Runs(), w.history(root.TaskID))
				}
				w.approve(r)
				d := w.state(root.ID, orchestrator.Completed)
				if d.Result.Text != "built" || d.Result.Commit == "" || w.git("show", "main:first.txt") != "coder" || w.git("show", "main:second.txt") != "builder" {
					t.Errorf("it ended with %+v", d.Result)
				}
				child := w.tree(root.TaskID)[1]
				asWasHandedOver(t, builder.Jobs()[0].Handover)
				asWasHandedOver(t, child.Work.Handover)
				hands, err := w.store.Hands(t.Context(), []string{child.ID})
				if err != nil || !slices.Equal(hands[child.ID].Artifacts, []string{"Notes", "Plan", "Report"}) {
					t.Errorf("the arrow is labelled %v, %v", hands[child.ID].Artifacts, err)
				}
			})
		})
	}
}

// asWasHandedOver checks the command object of handsOver, field by field.
func asWasHandedOver(t *testing.T, h *agent.Handover) {
	t.Helper()
	if h == nil {
		t.Fatal("nothing was handed over")
	}
	u := h.Update
	for what, ok := range map[string]bool{
		"goto": h.Goto == "builder" && h.Graph == "parent", "previous_agent": u.Context.PreviousAgent == "coder", "task_description": u.Context.TaskDescription == "go on",
		"completed": u.Context.Completed == "the plan", "artifacts_created": slices.Equal(u.Context.ArtifactsCreated, []string{"Notes"}),
		"artifacts":       len(u.Artifacts) == 2 && u.Artifacts["Report"] == nil && u.Artifacts["Plan"] != nil && *u.Artifacts["Plan"] == "docs/plan.md",
		"phase":           u.WorkflowState.Phase == "plan",
		"remaining_steps": slices.Equal(u.WorkflowState.RemainingSteps, []string{"build"}), "tokens_used": u.Metrics.TokensUsed == 7,
		"its context, without secrets": strings.HasPrefix(u.Context.More["note"], "key AKIA") && !strings.Contains(u.Context.More["note"], handedKey),
	} {
		if !ok {
			t.Errorf("%s did not arrive: %+v", what, *h)
		}
	}
}

// A refusal leaves the program as it is; while what it spawned works it cannot hand over;
// and the other agent's failure is its own.
func TestAHandOverThatIsRefusedOrFails(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db")
	w := newWorld(t, url, specs("coder", "builder", "boss")...)
	w.script("coder", handsOver("nobody"))
	gate := agenttest.NewGate()
	w.script("builder", gate.Then(func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
		return agent.Outcome{}, agent.Fail("exit", "builder broke.")
	}))
	w.start()
	r := w.request(w.send("coder", "one").TaskID, 1)
	if !strings.HasPrefix(r.Revision.Text, "unknown_agent: ") {
		t.Errorf("coder was told %q", r.Revision.Text)
	}
	if _, err := w.decide(r, approval.Reject, "no"); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 1)
	w.script("boss", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		if job.Generation > 0 {
			return agenttest.Done("again"), nil
		}
		if c, err := host.Delegate(ctx, agent.Hop{To: "builder", Text: "beside", Spawn: true}); err != nil || c.State == agent.Refused {
			return agent.Outcome{}, agent.Fail("test", "%+v, %v", c, err)
		}
		c, err := host.Delegate(ctx, agent.Hop{To: "builder", Text: "rest", Final: true})
		if err != nil {
			return agent.Outcome{}, err
		}
		told <- c.Error.Code + ": " + c.Error.Message
		gate.Open()
		for {
			if ended, err := host.Ended(ctx); err != nil || len(ended) > 0 {
				break
			}
		}
		return handsOver("builder")(ctx, job, host)
	})
	root := w.send("boss", "two")
	if s := <-told; !strings.HasPrefix(s, "conflict: ") || !strings.Contains(s, "gatehouse children --wait") {
		t.Errorf("boss was told %q", s)
	}
	d := w.state(root.ID, orchestrator.Failed)
	if d.Error.Code != "exit" || d.Error.Message != "builder broke." {
		t.Errorf("it failed with %+v", d.Error)
	}
	if again, err := w.engine.Retry(t.Context(), root.ID, w.ann); err != nil || again.Work.HandedTo != "" || again.Work.Checkpoint != nil {
		t.Errorf("a retry goes on with %+v, %v", again.Work, err)
	}
	if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != "again" {
		t.Errorf("the second run ended with %+v", d.Result)
	}
}

// A program that waits for what it spawned holds no slot, so that one worker is enough.
func TestWhoWaitsForASpawnedChildHoldsNoSlot(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder", "builder")...)
		w.config.Settings.Workers = 1
		w.engine.SetConfig(w.config)
		w.script("builder", agenttest.Answer("done"))
		w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			var all []string
			for _, text := range []string{"x", "y"} {
				c, err := host.Delegate(ctx, agent.Hop{To: "builder", Text: text, Spawn: true})
				if err != nil {
					return agent.Outcome{}, err
				}
				all = append(all, c.ID)
			}
			said := ""
			for _, id := range all {
				c, err := host.Await(ctx, id)
				if err != nil {
					return agent.Outcome{}, err
				}
				said += c.Result.Text + " "
			}
			return agenttest.Done(said), nil
		})
		w.start()
		if d := w.state(w.send("coder", "go").ID, orchestrator.Completed); d.Result.Text != "done done " {
			t.Errorf("it said %q", d.Result.Text)
		}
	})
}

// Where hand-overs are brought in task by task, a program whose hand-over failed works once
// more by itself, told of the failure and with its files, also where the node was stopped in
// between. It hands nothing on then.
func TestAProgramFallsBackToWorkingByItself(t *testing.T) {
	for restarts, kinds := range map[bool]func(*testing.T, func(*testing.T, string)){false: either, true: databases} {
		t.Run(fmt.Sprint("restarts ", restarts), func(t *testing.T) {
			kinds(t, func(t *testing.T, url string) {
				w := newWorld(t, url, specs("coder", "builder")...)
				w.config.Settings.OptIn = true
				w.engine.SetConfig(w.config)
				again := make(chan agent.Child, 1)
				coder := w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
					if job.Fallback == nil {
						return handsOver("builder")(ctx, job, host)
					}
					if _, err := os.Stat(filepath.Join(job.Dir, "first.txt")); err != nil {
						return agent.Outcome{}, err
					}
					c, err := host.Delegate(ctx, agent.Hop{To: "builder", Text: "go on", Final: true})
					if err != nil {
						return agent.Outcome{}, err
					}
					again <- c
					return agenttest.Done("alone, because " + job.Fallback.Error.Message), writeFile(job.Dir, "third.txt", "coder\n")
				})
				gate := agenttest.NewGate()
				builder := w.script("builder", gate.Then(func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
					return agent.Outcome{}, agent.Fail("exit", "builder broke.")
				}))
				w.start()
				root := w.ask(orchestrator.Submission{Agent: "coder", Text: "build it", Repository: "app", Handoffs: true})
				<-builder.Started()
				w.until(root.ID, "waiting alone", func(d orchestrator.Delegation) bool { return d.State == orchestrator.Waiting && d.Holder == "" })
				if restarts {
					w.stop()
					w.open(url)
					w.start()
				}
				gate.Open()
				r := w.request(root.TaskID, 1)
				var files []string
				for _, f := range r.Revision.Files {
					files = append(files, f.Path)
				}
				if !slices.Equal(files, []string{"first.txt", "third.txt"}) || r.Revision.Text != "alone, because builder broke." || coder.Runs() != 2 {
					t.Errorf("asked about %v, told %q, after %d runs\n%s", files, r.Revision.Text, coder.Runs(), w.history(root.TaskID))
				}
				if c := <-again; c.State != agent.Refused || c.Error.Code != "max_handoffs" || !strings.Contains(c.Error.Message, "the hand-over to builder failed, so coder works by itself now") {
					t.Errorf("handing over once more it was told %+v", c)
				}
				refused, _, err := w.store.Refusals(t.Context(), root.CreatedAt, 2)
				if err != nil || len(refused) != 1 || refused[0].Reason != guard.ReasonFallback {
					t.Errorf("the refusal does not say why nothing was counted: %+v, %v", refused, err)
				}
				if !strings.Contains(w.history(root.TaskID), "the hand-over to builder failed, so coder works by itself now") {
					t.Errorf("people are not told:\n%s", w.history(root.TaskID))
				}
				w.approve(r)
				if d := w.state(root.ID, orchestrator.Completed); d.Result.Commit == "" || len(w.tree(root.TaskID)) != 2 {
					t.Errorf("it ended with %+v and %d delegations", d.Result, len(w.tree(root.TaskID)))
				}
			})
		})
	}
}
