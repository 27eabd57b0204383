package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// calls is a turn of the model that calls a tool once for each id.
func calls(n int, ids ...string) agent.Turn {
	t := agent.Turn{N: n, Message: agent.Message{Role: agent.FromModel}, Model: "test/model", Usage: agent.Usage{InputTokens: 100, OutputTokens: 10}}
	for _, id := range ids {
		t.Message.Blocks = append(t.Message.Blocks, agent.Block{Type: agent.CallBlock, ID: id, Name: "tool", Input: []byte(`{}`)})
	}
	return t
}

// replies is the turn with the results of those calls; children are those that they tell of.
func replies(n int, ids []string, children ...string) agent.Turn {
	t := agent.Turn{N: n, Message: agent.Message{Role: agent.FromTools}, Children: children}
	for _, id := range ids {
		t.Message.Blocks = append(t.Message.Blocks, agent.Block{Type: agent.AnswerBlock, ID: id, Name: "tool", Text: "ok"})
	}
	return t
}

// model is an agent of kind llm on the repository.
func model(name string) agent.Spec {
	return agent.Spec{Name: name, Kind: agent.LLM, Model: "test/model", Repository: "app"}
}

func ids(children []agent.Child) []string {
	var all []string
	for _, c := range children {
		all = append(all, c.ID)
	}
	return all
}

func inDir(dir string, names ...string) string {
	var all []string
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b = []byte("-")
		}
		all = append(all, name+"="+string(b))
	}
	return strings.Join(all, " ")
}

// folders waits until so many runs have a folder: a child is claimed as soon as its parent is
// parked, whose folder goes right after that.
func (w *world) folders(want int) error {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		runs, err := os.ReadDir(filepath.Join(w.data, "runs"))
		if err != nil || len(runs) == want {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("there are %d folders of runs, want %d", len(runs), want)
		}
	}
}

// design.md, "Whose patch is it": a model that waits holds no slot, no goroutine and no
// folder. It goes on with its own files and with those that its children made of them;
// where two made the same file, the second is told of and left out.
func TestAConversationParksWithItsFiles(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, model("kik"), agent.Spec{Name: "one", Repository: "app"}, agent.Spec{Name: "two", Repository: "app"})
		w.config.Settings.Workers = 1
		w.engine.SetConfig(w.config)
		kik := w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			switch len(job.Turns) {
			case 0:
				if err := errors.Join(writeFile(job.Dir, "mine.txt", "mine"), host.SaveTurn(ctx, calls(1, "a", "b"), true)); err != nil {
					return agent.Outcome{}, err
				}
				return agent.Outcome{Park: &agent.Park{Hops: []agent.Hop{{Ref: "a", To: "one", Text: "x"}, {Ref: "b", To: "two", Text: "y"}}}}, nil
			default:
				if got := inDir(job.Dir, "mine.txt", "both.txt", "two.txt"); got != "mine.txt=mine both.txt=one after mine two.txt=-" {
					return agent.Outcome{}, agent.Fail("test", "the files are %q", got)
				}
				if len(job.Children) != 2 || !strings.Contains(job.Children[1].Result.Text, "The changes of two were not taken over") {
					return agent.Outcome{}, agent.Fail("test", "the children are %+v", job.Children)
				}
				return agenttest.Done("both"), host.SaveTurn(ctx, replies(2, []string{"a", "b"}, ids(job.Children)...), false)
			}
		})
		child := func(name string) agenttest.Script {
			return func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
				if err := w.folders(1); err != nil {
					return agent.Outcome{}, agent.Fail("test", "%v", err)
				}
				text := name + " after " + strings.TrimPrefix(inDir(job.Dir, "mine.txt"), "mine.txt=")
				err := writeFile(job.Dir, "both.txt", text)
				if name == "two" {
					err = errors.Join(err, writeFile(job.Dir, "two.txt", text))
				}
				return agenttest.Done(name), err
			}
		}
		w.script("one", child("one"))
		w.script("two", child("two"))
		w.start()
		root := w.send("kik", "do it")
		r := w.request(root.TaskID, 1)
		if len(r.Revision.Files) != 2 || w.count(root.TaskID, event.Requested) != 1 || w.count(root.TaskID, event.PatchRejected) != 1 || kik.Runs() != 2 {
			t.Errorf("%d runs, the request shows %+v\n%s", kik.Runs(), r.Revision.Files, w.history(root.TaskID))
		}
		w.approve(r)
		d := w.state(root.ID, orchestrator.Completed)
		if d.Usage.InputTokens != 100 || d.Work.Checkpoint == nil || len(d.Work.Checkpoint.Merged) != 0 {
			t.Errorf("used %+v, kept %+v", d.Usage, d.Work.Checkpoint)
		}
	})
}

// A run that is lost begins behind its last stored turn, with the files of that turn and
// nothing of what came after; a turn is never stored twice. Who comes on is not given up:
// this one is lost four times, and three in a row are the limit.
func TestALostConversationGoesOnBehindItsLastTurn(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, model("kik"))
		kik := w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			n := len(job.Turns)
			if want := []string{"f=- g=-", "f=1 g=-", "f=2 g=-", "f=3 g=-", "f=4 g=-"}[n/2]; inDir(job.Dir, "f", "g") != want {
				return agent.Outcome{}, agent.Fail("test", "at turn %d the files are %q and not %q", n, inDir(job.Dir, "f", "g"), want)
			}
			if n == 8 {
				return agenttest.Done("done"), nil
			}
			id := fmt.Sprint("call", n)
			err := errors.Join(host.SaveTurn(ctx, calls(n+1, id), false), writeFile(job.Dir, "f", fmt.Sprint(n/2+1)),
				host.SaveTurn(ctx, replies(n+2, []string{id}), true), writeFile(job.Dir, "g", "not stored"))
			if again := host.SaveTurn(ctx, calls(n+1, id), false); !errors.Is(again, orchestrator.ErrExists) {
				return agent.Outcome{}, agent.Fail("test", "a turn was stored twice: %v", again)
			}
			return agent.Outcome{}, errors.Join(err, errors.New("the machine broke"))
		})
		w.start()
		root := w.send("kik", "do it")
		r := w.request(root.TaskID, 1)
		if kik.Runs() != 5 || len(r.Revision.Files) != 1 || r.Revision.Files[0].Path != "f" {
			t.Errorf("%d runs, the request shows %+v", kik.Runs(), r.Revision.Files)
		}
		turns, err := w.store.Turns(t.Context(), root.ID, 0)
		if err != nil || len(turns) != 8 || turns[7].Message.Role != agent.FromTools {
			t.Errorf("%d turns, %v", len(turns), err)
		}
		if _, err := w.decide(r, "request_changes", "again, please"); err != nil {
			t.Fatal(err)
		}
		// A new generation that goes on: the conversation and the files came along.
		w.request(root.TaskID, 2)
		job := kik.Jobs()[5]
		if len(job.Turns) != 8 || job.Carried != 8 || job.Revision != 2 || job.Feedback == nil || job.Feedback.Comment != "again, please" {
			t.Errorf("the new run began with %d turns and %+v", len(job.Turns), job.Feedback)
		}
	})
}

// People pause a task in the middle of a run: the model stops at its next stored turn and
// loses nothing, nothing of the task is claimed, and resuming goes on from there.
func TestAPausedTaskStandsStill(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, model("kik"), agent.Spec{Name: "other"})
		w.script("other", agenttest.Answer("done"))
		gate := agenttest.NewGate()
		kik := w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if len(job.Turns) > 0 {
				return agenttest.Done(inDir(job.Dir, "f")), nil
			}
			return gate.Then(func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
				if err := errors.Join(writeFile(job.Dir, "f", "kept"), host.SaveTurn(ctx, calls(1), true)); err != nil {
					return agent.Outcome{}, err
				}
				return agenttest.Done("it went on"), nil
			})(ctx, job, host)
		})
		w.start()
		root := w.send("kik", "do it")
		<-kik.Started()
		for range 2 { // twice is once
			if _, err := w.engine.Pause(t.Context(), root.ID, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		gate.Open()
		d := w.state(root.ID, orchestrator.Queued)
		w.state(w.send("other", "meanwhile").ID, orchestrator.Completed) // the others are not held up
		if refs, err := w.store.Claimable(t.Context(), "n", d.ReadyAt.Add(1e12), 9); err != nil || len(refs) != 0 || kik.Runs() != 1 {
			t.Errorf("%d runs; to be claimed: %v, %v", kik.Runs(), refs, err)
		}
		if d.Losses != 0 || w.count(root.TaskID, event.Paused) != 1 {
			t.Errorf("%d losses\n%s", d.Losses, w.history(root.TaskID))
		}
		if _, err := w.engine.Unpause(t.Context(), root.TaskID, "ann"); err != nil {
			t.Fatal(err)
		}
		r := w.request(root.TaskID, 1)
		if r.Revision.Text != "f=kept" || w.count(root.TaskID, event.Unpaused) != 1 || kik.Runs() != 2 {
			t.Errorf("after %d runs the answer is %q", kik.Runs(), r.Revision.Text)
		}
		w.approve(r)
		w.state(root.ID, orchestrator.Completed)
		if _, err := w.engine.Pause(t.Context(), root.ID, "ann"); orchestrator.CodeOf(err) != orchestrator.CodeEnded {
			t.Errorf("pausing an ended task says %v", err)
		}
	})
}

// Retry from a turn: the fork has the conversation up to it, cut where every call has its
// result, and the files of it; the first task stays as it is.
func TestAForkGoesOnFromATurn(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, model("kik"), agent.Spec{Name: "plain"})
		w.script("plain", agenttest.Answer("no conversation"))
		w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			for n := len(job.Turns) + 1; n <= 6; n += 2 {
				id := fmt.Sprint("call", n)
				err := errors.Join(host.SaveTurn(ctx, calls(n, id), false), writeFile(job.Dir, "f", fmt.Sprint(n)), host.SaveTurn(ctx, replies(n+1, []string{id}), true))
				if err != nil {
					return agent.Outcome{}, err
				}
			}
			return agenttest.Done(inDir(job.Dir, "f", "own") + fmt.Sprint(" after ", len(job.Turns))), nil
		})
		w.start()
		root := w.send("kik", "do it")
		first := w.request(root.TaskID, 1)
		for _, c := range []struct {
			turn, has int
			files     string
		}{{2, 2, "f=1"}, {3, 2, "f=1"}, {4, 4, "f=3"}, {1, 0, "f=-"}, {0, 6, "f=5"}} {
			before := len(w.scripts["kik"].Jobs())
			task, forked, err := w.engine.Fork(t.Context(), orchestrator.Fork{DelegationID: root.ID, Turn: c.turn, RequesterID: w.bob.ID, Requester: "bob", Via: origin.From(origin.API)})
			if err != nil {
				t.Fatal(err)
			}
			r := w.request(task.ID, 1)
			job := w.scripts["kik"].Jobs()[before]
			if len(job.Turns) != c.has || task.ForkOf != root.ID || !strings.Contains(r.Revision.Text, fmt.Sprint("after ", c.has)) || job.Text != "do it" {
				t.Errorf("turn %d: %d turns, fork of %s, answer %q", c.turn, len(job.Turns), task.ForkOf, r.Revision.Text)
			}
			if want := map[bool]string{true: "f=5", false: c.files}[c.has < 6]; !strings.HasPrefix(r.Revision.Text, want) || len(r.Revision.Files) != 1 {
				t.Errorf("turn %d: the files became %q, %+v", c.turn, r.Revision.Text, r.Revision.Files)
			}
			d := w.state(forked.ID, orchestrator.AwaitingApproval)
			if own := int64(3-c.has/2) * 100; d.Usage.InputTokens != own {
				t.Errorf("turn %d: the fork has used %d and not %d", c.turn, d.Usage.InputTokens, own)
			}
			// A fork of the fork at its first turn has the files of that turn.
			if c.has >= 2 {
				commit, _, err := w.store.KeptAt(t.Context(), forked.ID, 0, 2)
				if err != nil || commit == "" {
					t.Errorf("turn %d: the fork's turn 2 has lost its files: %v", c.turn, err)
				}
			}
			if w.count(task.ID, event.Forked) != 1 {
				t.Error("the fork does not say what it is")
			}
		}
		if w.count(root.TaskID, event.Forked) != 5 {
			t.Errorf("the first task does not tell of its forks:\n%s", w.history(root.TaskID))
		}
		w.approve(first) // it is not touched
		w.state(root.ID, orchestrator.Completed)
		for _, turn := range []int{7, -1} {
			if _, _, err := w.engine.Fork(t.Context(), orchestrator.Fork{DelegationID: root.ID, Turn: turn}); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
				t.Errorf("turn %d: %v", turn, err)
			}
		}
		plain := w.state(w.send("plain", "x").ID, orchestrator.Completed)
		if _, _, err := w.engine.Fork(t.Context(), orchestrator.Fork{DelegationID: plain.ID, Turn: 1}); orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			t.Errorf("a program's run was forked: %v", err)
		}
	})
}
