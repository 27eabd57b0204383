package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"gatehouse/orchestrator/store/storetest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// K14, K15: kik plans, coder changes, reviewer looks at the files as coder left them and
// may hand work back to neither; each answer goes back to its caller, up to kik, and one
// request asks for coder's final tree.
func TestATaskGoesThroughATeamAndLandsAfterAYes(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url,
			agent.Spec{Name: "kik", Kind: agent.Workflow, Steps: []agent.Step{{ID: "change", Agent: "coder", Task: "{{.Task}}"}}},
			agent.Spec{Name: "coder", Repository: "app"}, agent.Spec{Name: "reviewer", AnalysisOnly: true})
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if err := writeFile(job.Dir, "core/a.txt", "one\n2\nthree\n"); err != nil {
				return agent.Outcome{}, err
			}
			return agenttest.HandOn("reviewer")(ctx, job, host)
		})
		w.script("reviewer", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			b, err := os.ReadFile(filepath.Join(job.Dir, "core/a.txt"))
			for _, above := range []string{"kik", "coder"} {
				c, hop := host.Delegate(ctx, agent.Hop{To: above, Text: "again"})
				if err = errors.Join(err, hop); c.State != agent.Refused || c.Error.Code != guard.CodeCycle {
					t.Errorf("the reviewer handed work to %s: %+v", above, c)
				}
			}
			return agenttest.Done("I saw " + string(b)), err
		})
		w.start()
		root := w.send("kik", "Fix the second line")
		r := w.request(root.TaskID, 1)
		if got := r.Revision.Text; got != "I saw one\n2\nthree\n" {
			t.Errorf("the reviewer's answer came up as %q", got)
		}
		if len(r.Revision.Files) != 1 || r.Revision.Files[0].Path != "core/a.txt" {
			t.Errorf("the request shows %+v", r.Revision.Files)
		}
		w.approve(r)
		done := w.state(root.ID, orchestrator.Completed)
		head := w.git("rev-parse", "main")
		if got := w.git("log", "-1", "--format=%P%n%B", "main"); strings.Count(strings.SplitN(got, "\n", 2)[0], " ") != 1 || !strings.Contains(got, "Requested-by: ann") || !strings.Contains(got, "Approved-by: bob") || !strings.Contains(got, "Gatehouse-Digest: "+r.Revision.Digest) {
			t.Errorf("the merge is %q", got)
		}
		if w.git("show", "main:core/a.txt") != "one\n2\nthree" {
			t.Error("another tree landed")
		}
		tree, _ := w.store.Tree(t.Context(), root.TaskID)
		if len(tree) != 3 || tree[1].Result.Commit != head || tree[2].Chain.String() != "kik → coder → reviewer" {
			t.Errorf("the tree is %d deep; landed %s, head %s", len(tree), tree[1].Result.Commit, head)
		}
		if done.Result == nil || !strings.HasPrefix(done.Result.Text, "I saw one\n2\nthree\n") || w.count(root.TaskID, event.PatchLanded) != 1 || w.count(root.TaskID, event.Requested) != 1 {
			t.Errorf("history:\n%s", w.history(root.TaskID))
		}
		landed := `{"approved_by":["bob"],"branch":"main","carried_over":false,"commit":"` + head + `","deliver":"merge","digest":"` + r.Revision.Digest + `","repository":"app"}`
		if !strings.Contains(w.history(root.TaskID), landed) {
			t.Errorf("the landing is not told as %s:\n%s", landed, w.history(root.TaskID))
		}
		if w.read("core/a.txt") != "one\n2\nthree\n" {
			t.Error("the checked-out folder was not updated")
		}
	})
}

func (w *world) read(name string) string {
	b, err := os.ReadFile(filepath.Join(w.repo, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// K45: who only analyses passes by itself, and the history says so. What it changed
// all the same is discarded.
func TestAnalysisPassesByItself(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "reader", AnalysisOnly: true}, agent.Spec{Name: "scribbler", AnalysisOnly: true})
		w.script("reader", agenttest.Answer("all is well"))
		w.script("scribbler", writes("core/a.txt", "scribble"))
		w.start()
		a, b := w.send("reader", "look"), w.send("scribbler", "look")
		w.state(a.ID, orchestrator.Completed)
		w.state(b.ID, orchestrator.Completed)
		for _, d := range []orchestrator.Delegation{a, b} {
			if !strings.Contains(w.history(d.TaskID), "approval.decided rule:analysis-only") || w.count(d.TaskID, event.Requested) != 0 {
				t.Errorf("history:\n%s", w.history(d.TaskID))
			}
		}
		if w.count(a.TaskID, event.PatchRejected) != 0 || !strings.Contains(w.history(b.TaskID), `"code":"analysis_only"`) || !strings.Contains(w.history(b.TaskID), `"files":["core/a.txt"]`) {
			t.Errorf("discarded changes are not listed:\n%s", w.history(b.TaskID))
		}
	})
}

// What an agent that only analyses changed, and took over from a writer below it, is thrown
// away, and its row says so for every face.
func TestWhatIsDiscardedIsSaid(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "reader", AnalysisOnly: true}, agent.Spec{Name: "writer"})
		w.script("writer", writes("core/new.txt", "new"))
		w.script("reader", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			c, err := host.Delegate(ctx, agent.Hop{To: "writer", Text: "write"})
			if err == nil {
				_, err = host.Await(ctx, c.ID)
			}
			if err != nil {
				return agent.Outcome{}, err
			}
			return agenttest.Done("looked"), nil
		})
		w.start()
		d := w.state(w.send("reader", "look").ID, orchestrator.Completed)
		const want = "reader only analyses: its changes to 1 file were discarded, its answer stands. What writer changed for it went with them."
		if d.Work.Discarded != want || !strings.Contains(w.history(d.TaskID), want) || w.git("rev-list", "--count", "main") != "1" {
			t.Errorf("it says %q\n%s", d.Work.Discarded, w.history(d.TaskID))
		}
		if writer := w.tree(d.TaskID)[1]; writer.Work.Discarded != "" || writer.State != orchestrator.Completed {
			t.Errorf("the writer is %s and says %q", writer.State, writer.Work.Discarded)
		}
	})
}

// design.md, "Whose patch is it": a child's changes come back into the caller's
// checkout before the caller goes on.
func TestAChildsChangesComeBackIntoTheCallersCheckout(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder", "helper")...)
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if err := writeFile(job.Dir, "mine.txt", "mine"); err != nil {
				return agent.Outcome{}, err
			}
			out, err := agenttest.HandOn("helper")(ctx, job, host)
			if b, readErr := os.ReadFile(filepath.Join(job.Dir, "helped.txt")); readErr != nil || string(b) != "helped after mine" {
				return out, fmt.Errorf("the helper's file is %q, %w", b, readErr)
			}
			return out, err
		})
		w.script("helper", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			b, err := os.ReadFile(filepath.Join(job.Dir, "mine.txt"))
			if err != nil {
				return agent.Outcome{}, err
			}
			return agenttest.Done("helped"), writeFile(job.Dir, "helped.txt", "helped after "+string(b))
		})
		w.start()
		root := w.send("coder", "do it")
		r := w.request(root.TaskID, 1)
		if len(r.Revision.Files) != 2 || w.count(root.TaskID, event.Requested) != 1 {
			t.Errorf("one request should show both files: %+v", r.Revision.Files)
		}
	})
}

// O19–O21 and the slot rule: who waits holds no slot, so one worker is enough.
func TestOneWorkerIsEnoughForAnyDepth(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a", "b", "c", "d")...)
		w.config.Settings.Workers = 1
		w.engine.SetConfig(w.config)
		w.script("a", agenttest.HandOn("b"))
		w.script("b", agenttest.HandOn("c"))
		w.script("c", agenttest.HandOn("d"))
		w.script("d", agenttest.Answer("bottom"))
		w.start()
		if d := w.state(w.send("a", "go").ID, orchestrator.Completed); d.Result.Text != "bottom" {
			t.Errorf("a answered %q", d.Result.Text)
		}
	})
}

// K2, K7, O9: the configuration says how many hops there may be, also for callers that
// were read from the database.
func TestAChainIsAsLongAsConfigured(t *testing.T) {
	for depth, want := range map[int]string{2: "a → b → c → d would be 3 hops long, and the limit is 2", 4: "bottom"} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			either(t, func(t *testing.T, url string) {
				w := newWorld(t, url, specs("a", "b", "c", "d", "e")...)
				w.config.Settings.MaxDepth = depth
				w.engine.SetConfig(w.config)
				for from, to := range map[string]string{"a": "b", "b": "c", "c": "d", "d": "e"} {
					w.script(from, agenttest.HandOn(to))
				}
				w.script("e", agenttest.Answer("bottom"))
				w.start()
				if d := w.state(w.send("a", "go").ID, orchestrator.Completed); !strings.Contains(d.Result.Text, want) {
					t.Errorf("a answered %q, want %q", d.Result.Text, want)
				}
			})
		})
	}
}

// O19: A hands to B while B hands to A; with one slot each both still end.
func TestMutualDelegationDoesNotHang(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a", "b")...)
		w.config.Settings.Workers = 2
		w.engine.SetConfig(w.config)
		handOnce := func(to string) agenttest.Script {
			return func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
				if job.From != "" {
					return agenttest.Done("leaf"), nil
				}
				return agenttest.HandOn(to)(ctx, job, host)
			}
		}
		w.script("a", handOnce("b"))
		w.script("b", handOnce("a"))
		w.start()
		one, two := w.send("a", "x"), w.send("b", "y")
		w.state(one.ID, orchestrator.Completed)
		w.state(two.ID, orchestrator.Completed)
	})
}

// K9–K11, O8: a loop is refused at the first attempt, as data for the caller.
func TestALoopIsRefusedAsData(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a", "b")...)
		first := w.script("a", agenttest.HandOn("b"))
		w.script("b", agenttest.HandOn("A"))
		w.start()
		root := w.send("a", "round")
		d := w.state(root.ID, orchestrator.Completed)
		if !strings.Contains(d.Result.Text, "already in delegation chain") || first.Runs() != 1 {
			t.Errorf("a ran %d times and was told %q", first.Runs(), d.Result.Text)
		}
		if w.count(root.TaskID, event.DelegationRefused) != 1 {
			t.Error("the refusal is no event")
		}
	})
}

// P37–P39: cancel stops the tree, each with who did it and why; no event of it follows.
func TestCancelStopsTheTree(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a", "b")...)
		gate := agenttest.NewGate()
		w.script("a", agenttest.HandOn("b"))
		leaf := w.script("b", gate.Then(agenttest.Answer("late")))
		w.start()
		root := w.send("a", "go")
		<-leaf.Started()
		if _, err := w.engine.CancelFor(t.Context(), root.TaskID, "ann", " wrong branch\n"); err != nil {
			t.Fatal(err)
		}
		tree, _ := w.store.Tree(t.Context(), root.TaskID)
		for _, d := range tree {
			if d.State != orchestrator.Cancelled {
				t.Errorf("%s is %s", d.To, d.State)
			}
			w.cancelled(d, "ann", "wrong branch")
		}
		n := len(w.events(root.TaskID))
		gate.Open()
		w.stop()
		if got := len(w.events(root.TaskID)); got != n {
			t.Errorf("%d events came after the cancel:\n%s", got-n, w.history(root.TaskID))
		}
		if _, err := w.engine.Cancel(t.Context(), root.ID, "ann"); orchestrator.CodeOf(err) != orchestrator.CodeEnded {
			t.Errorf("a second cancel says %v", err)
		}
	})
}

// An agent that hands work on and ends without waiting takes its children with it,
// also when they hold the only slot.
func TestAnAgentThatDoesNotWaitTakesItsChildrenWithIt(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a", "b")...)
		w.config.Settings.Workers = 1
		w.engine.SetConfig(w.config)
		never := agenttest.NewGate()
		leaf := w.script("b", never.Then(agenttest.Answer("late")))
		w.script("a", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if _, err := host.Delegate(ctx, agent.Hop{To: "b", Text: job.Text}); err != nil {
				return agent.Outcome{}, err
			}
			<-leaf.Started()
			return agenttest.Done("gone"), nil
		})
		w.start()
		root := w.state(w.send("a", "go").ID, orchestrator.Completed)
		tree, err := w.store.Tree(t.Context(), root.TaskID)
		if err != nil || len(tree) != 2 || tree[1].State != orchestrator.Cancelled {
			t.Errorf("%v: the child is %s", err, tree[1].State)
		}
	})
}

func TestAFailedTaskIsRunAgain(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a", "b")...)
		fails := true
		w.script("a", agenttest.HandOn("b"))
		leaf := w.script("b", func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) { return agenttest.Done("b"), nil })
		w.script("a", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			out, err := agenttest.HandOn("b")(ctx, job, host)
			if fails {
				fails = false
				return out, agent.Fail("exit", "no luck")
			}
			return out, err
		})
		w.start()
		root := w.send("a", "go")
		d := w.state(root.ID, orchestrator.Failed)
		if d.Error == nil || d.Error.Code != "exit" {
			t.Errorf("failed with %v", d.Error)
		}
		if _, err := w.engine.Retry(t.Context(), root.TaskID, w.ann); err != nil {
			t.Fatal(err)
		}
		w.state(root.ID, orchestrator.Completed)
		if leaf.Runs() != 2 {
			t.Errorf("b ran %d times; a retry makes its hops anew", leaf.Runs())
		}
		if _, err := w.engine.Retry(t.Context(), root.ID, w.ann); orchestrator.CodeOf(err) != orchestrator.CodeEnded {
			t.Errorf("retry of a completed task says %v", err)
		}
	})
}

func TestTheSameKeyIsTheSameTask(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a")...)
		s := orchestrator.Submission{Agent: "a", Text: "once", Key: "k1", RequesterID: w.ann.ID, Requester: "ann"}
		first, _, created, err := w.engine.Submit(t.Context(), s)
		again, _, second, err2 := w.engine.Submit(t.Context(), s)
		if err != nil || err2 != nil || !created || second || first.ID != again.ID {
			t.Errorf("%v %v: %s %v, %s %v", err, err2, first.ID, created, again.ID, second)
		}
		s.Text = "another"
		if _, _, _, err := w.engine.Submit(t.Context(), s); orchestrator.CodeOf(err) != orchestrator.CodeKeyReused {
			t.Errorf("another text under the key says %v", err)
		}
	})
}

func TestANoEndsIt(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", writes("core/a.txt", "x"))
		w.start()
		root := w.send("coder", "go")
		before := w.git("rev-parse", "main")
		if _, err := w.decide(w.request(root.TaskID, 1), approval.Reject, "Breaks resume."); err != nil {
			t.Fatal(err)
		}
		d := w.state(root.ID, orchestrator.Rejected)
		if d.Error == nil || !strings.Contains(d.Error.Message, "Breaks resume.") || w.git("rev-parse", "main") != before {
			t.Errorf("%+v", d.Error)
		}
	})
}

func TestRequestedChangesRunTheAgentAgain(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			text := "first"
			if job.Feedback != nil {
				text = job.Feedback.Comment
			}
			return writes("core/a.txt", text)(ctx, job, host)
		})
		w.start()
		root := w.send("coder", "go")
		one := w.request(root.TaskID, 1)
		if _, err := w.decide(one, approval.RequestChanges, "second"); err != nil {
			t.Fatal(err)
		}
		two := w.request(root.TaskID, 2)
		if two.ID != one.ID || two.Revision.Digest == one.Revision.Digest {
			t.Error("a revision keeps the request's id and has a digest of its own")
		}
		if _, err := w.decide(one, approval.Approve, ""); orchestrator.CodeOf(err) != orchestrator.CodeSuperseded {
			t.Errorf("the old digest says %v", err)
		}
		w.approve(two)
		w.state(root.ID, orchestrator.Completed)
		if got := w.git("show", "main:core/a.txt"); got != "second" {
			t.Errorf("landed %q", got)
		}
	})
}

// The base moved elsewhere: the yes carries over and lands exactly those files.
func TestAYesCarriesOverWhenTheBaseMovedElsewhere(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", writes("core/a.txt", "agent\n"))
		w.start()
		root := w.send("coder", "go")
		r := w.request(root.TaskID, 1)
		w.commit(map[string]string{"core/b.txt": "people\n"})
		w.approve(r)
		w.state(root.ID, orchestrator.Completed)
		if w.git("show", "main:core/a.txt") != "agent" || w.git("show", "main:core/b.txt") != "people" {
			t.Error("the landing lost somebody's work")
		}
	})
}

// The base moved in a changed file: asked again, even where git could merge it.
func TestAYesDoesNotCarryOverIntoAChangedFile(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", writes("core/a.txt", "one\ntwo\nTHREE\n"))
		w.start()
		root := w.send("coder", "go")
		r := w.request(root.TaskID, 1)
		w.commit(map[string]string{"core/a.txt": "ONE\ntwo\nthree\n"})
		moved := w.git("rev-parse", "main")
		w.approve(r)
		again := w.request(root.TaskID, 2)
		if w.git("rev-parse", "main") != moved || w.count(root.TaskID, event.Stale) != 1 {
			t.Error("something landed that nobody approved")
		}
		// Only the landing knew: nobody had looked at the branch before the yes.
		const missed = "Nothing landed: main changed core/a.txt meanwhile. Revision 2 asks again."
		if said, err := w.gateway.MissedBy(t.Context(), again, again.Decisions[0].UserID); err != nil || said != missed {
			t.Errorf("whose yes it was is told %q, %v", said, err)
		}
		if _, err := w.decide(r, approval.Approve, ""); err == nil {
			t.Error("the old digest was taken")
		}
		w.approve(again)
		w.state(root.ID, orchestrator.Completed)
		if got := w.git("show", "main:core/a.txt"); got == "ONE\ntwo\nthree" {
			t.Error("the second yes landed nothing")
		}
	})
}

// A dirty folder holds the landing up; nothing is lost, and Retry lands it.
func TestADirtyFolderHoldsTheLandingUp(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", writes("core/a.txt", "agent\n"))
		w.start()
		root := w.send("coder", "go")
		r := w.request(root.TaskID, 1)
		w.write(w.repo, "core/b.txt", "half done")
		w.approve(r)
		d := w.until(root.ID, "held up", func(d orchestrator.Delegation) bool { return d.Work.Problem != "" && d.Holder == "" })
		if d.State != orchestrator.Landing || w.read("core/b.txt") != "half done" || w.read("core/a.txt") == "agent\n" {
			t.Errorf("%s: %s", d.State, d.Work.Problem)
		}
		if held, err := w.gateway.Request(t.Context(), r.ID); err != nil || held.Version != r.Version+2 {
			t.Errorf("the cards do not say so: version %d, then %d, %v", r.Version, held.Version, err)
		}
		w.git("checkout", "-q", "--", ".")
		if _, err := w.engine.Retry(t.Context(), root.ID, w.ann); err != nil {
			t.Fatal(err)
		}
		w.state(root.ID, orchestrator.Completed)
		if w.read("core/a.txt") != "agent\n" {
			t.Error("the folder was not updated")
		}
	})
}

// Once the folder is clean again the landing goes on without anybody's Retry, and what
// held it up was said once.
func TestALandingGoesOnWhenTheFolderIsCleanAgain(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", writes("core/a.txt", "agent\n"))
		w.start()
		root := w.send("coder", "go")
		r := w.request(root.TaskID, 1)
		w.write(w.repo, "core/b.txt", "half done")
		w.approve(r)
		w.until(root.ID, "held up again", func(d orchestrator.Delegation) bool { return d.Work.Problem != "" && d.Losses >= 2 })
		w.git("checkout", "-q", "--", ".")
		w.state(root.ID, orchestrator.Completed)
		said := 0
		for _, e := range w.events(root.TaskID) {
			if strings.Contains(string(e.Data), "landing_held") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("what held it up was said %d times", said)
		}
	})
}

func TestARevertIsARequestOfItsOwn(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		coder := w.script("coder", writes("core/a.txt", "agent\n"))
		w.start()
		root := w.send("coder", "go")
		r := w.request(root.TaskID, 1)
		w.approve(r)
		w.state(root.ID, orchestrator.Completed)
		task, err := w.gateway.Revert(t.Context(), r.ID, people.As(w.ann, nil))
		if err != nil {
			t.Fatal(err)
		}
		w.approve(w.request(task.ID, 1))
		w.state(task.RootID, orchestrator.Completed)
		if w.read("core/a.txt") != "one\ntwo\nthree\n" || coder.Runs() != 1 {
			t.Errorf("a.txt is %q and coder ran %d times", w.read("core/a.txt"), coder.Runs())
		}
	})
}

// A patch that arrives as text goes through the strict parser.
func TestAPatchAsText(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("good", "bad", "blank")...)
		answer := func(patch string) agenttest.Script {
			return func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
				return agent.Outcome{Result: &agent.Result{Text: "see patch", Patch: patch}}, nil
			}
		}
		w.script("good", answer("diff --git a/core/b.txt b/core/b.txt\n--- a/core/b.txt\n+++ b/core/b.txt\n@@ -1 +1 @@\n-b\n+c\n"))
		w.script("bad", answer("diff --git a/core/b.txt b/core/b.txt\n--- a/core/b.txt\n+++ b/core/b.txt\n@@ -1 +1 @@\n-nothing like it\n+c\n"))
		w.script("blank", answer(" \n"))
		w.start()
		good, bad, blank := w.send("good", "x"), w.send("bad", "x"), w.send("blank", "x")
		if r := w.request(good.TaskID, 1); len(r.Revision.Files) != 1 {
			t.Errorf("%+v", r.Revision.Files)
		}
		if d := w.state(bad.ID, orchestrator.Failed); d.Error.Code != "context_mismatch" || w.count(bad.TaskID, event.PatchRejected) != 1 {
			t.Errorf("%+v", d.Error)
		}
		w.state(blank.ID, orchestrator.Completed)
	})
}

// A node that stops gives back what it was at; the next one goes on.
func TestAStopGivesBackWhatWasUnderWay(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a")...)
		gate := agenttest.NewGate()
		first := w.script("a", gate.Then(agenttest.Answer("done")))
		w.start()
		root := w.send("a", "go")
		<-first.Started()
		w.stop()
		d, err := w.store.Delegation(t.Context(), root.ID)
		if err != nil || d.State != orchestrator.Queued || d.Losses != 0 {
			t.Fatalf("%v: %s, %d losses", err, d.State, d.Losses)
		}
		gate.Open()
		w.start()
		w.state(root.ID, orchestrator.Completed)
	})
}

// A39: a lost node: its row is claimed again after the lease; the third loss is the end.
func TestALostLeaseIsClaimedAgainAndTheThirdLossIsTheEnd(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("a")...)
		attempts := make(chan int, 9)
		w.script("a", func(ctx context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			attempts <- job.Attempt
			return agent.Outcome{}, errors.New("the machine is on fire")
		})
		w.start()
		d := w.state(w.send("a", "go").ID, orchestrator.Failed)
		if d.Error.Code != agent.CodeLost || d.Losses != 3 {
			t.Errorf("%+v after %d losses", d.Error, d.Losses)
		}
		for want := 1; want <= 3; want++ {
			if got := <-attempts; got != want {
				t.Errorf("it was told that it is attempt %d, want %d", got, want)
			}
		}
	})
}

// 200 tasks on two nodes over one PostgreSQL: each ran once, both took part.
func TestTwoNodesShareTheWork(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	var ran [2]int
	nodes := make([]*world, 2)
	for i := range nodes {
		if i == 0 {
			nodes[i] = newWorld(t, url, specs("a")...)
		} else {
			nodes[i] = &world{t: t, data: t.TempDir(), repo: nodes[0].repo, config: nodes[0].config, scripts: map[string]*agenttest.Scripted{}, ahead: nodes[0].ahead, ann: nodes[0].ann, bob: nodes[0].bob}
			nodes[i].open(url)
		}
		nodes[i].script("a", agenttest.Answer("done"))
	}
	var ids []string
	for n := range 200 {
		ids = append(ids, nodes[0].send("a", fmt.Sprint("task ", n)).ID)
	}
	for _, n := range nodes {
		n.start()
	}
	for _, id := range ids {
		if d := nodes[1].state(id, orchestrator.Completed); d.Attempt != 1 {
			t.Errorf("%s took %d attempts", id, d.Attempt)
		}
	}
	for i, n := range nodes {
		ran[i] = n.scripts["a"].Runs()
	}
	if ran[0]+ran[1] != 200 || ran[0] == 0 || ran[1] == 0 {
		t.Errorf("the nodes ran %v", ran)
	}
}

// A request made on one node is landed by the other, which has no mirror of it yet.
func TestARequestOfOneNodeLandsOnTheOther(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	one := newWorld(t, url, specs("coder")...)
	one.script("coder", writes("core/a.txt", "agent\n"))
	one.start()
	root := one.send("coder", "go")
	r := one.request(root.TaskID, 1)
	one.stop()
	two := &world{t: t, data: t.TempDir(), repo: one.repo, config: one.config, scripts: map[string]*agenttest.Scripted{}, ahead: one.ahead, ann: one.ann, bob: one.bob}
	two.open(url)
	two.start()
	two.approve(r)
	two.state(root.ID, orchestrator.Completed)
	if one.read("core/a.txt") != "agent\n" {
		t.Error("nothing landed")
	}
}
