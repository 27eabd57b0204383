package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// say tells an agent something in a person's name.
func (w *world) say(by people.User, id, text, key string) (orchestrator.Message, error) {
	m, _, err := w.engine.Tell(w.t.Context(), id, orchestrator.Words{Text: text, Key: key, By: by, Via: origin.From(origin.CLI)})
	return m, err
}

// said waits until the agent has something unread, or all of it read.
func (w *world) said(id string, unread, read int) orchestrator.Delegation {
	w.t.Helper()
	return w.until(id, fmt.Sprintf("with %d unread and %d read", unread, read), func(d orchestrator.Delegation) bool {
		return len(d.Work.Unread) == unread && len(d.Work.Read) == read
	})
}

func heard(messages []agent.PersonMessage) string {
	var all []string
	for _, m := range messages {
		all = append(all, m.From+": "+m.Text)
	}
	return strings.Join(all, "; ")
}

// What people say to a program reaches it in order and once, with its author; whoever said it
// has a part in the change that comes of it. An attempt that is lost is told it again.
func TestAProgramHearsWhatPeopleSay(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Repository: "app", Protocol: "jsonl"})
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if len(job.Told) > 0 {
				return agenttest.Done("knew " + heard(job.Told)), writeFile(job.Dir, "new.txt", heard(job.Told))
			}
			var all []agent.PersonMessage
			for len(all) < 3 {
				said, err := host.Hear(ctx, true)
				if err != nil {
					return agent.Outcome{}, err
				}
				all = append(all, said...)
			}
			if none, err := host.Hear(ctx, false); err != nil || len(none) > 0 {
				return agent.Outcome{}, agent.Fail("test", "heard %v twice: %v", none, err)
			}
			return agent.Outcome{}, errors.New("the program was lost: " + heard(all))
		})
		w.start()
		root := w.send("coder", "write it")
		first, err := w.say(w.bob, root.ID, "in French ", "k1")
		if err != nil || first.Text != "in French" || first.From != "bob" || !strings.HasPrefix(first.ID, "msg_") {
			t.Fatalf("said %+v, %v", first, err)
		}
		if again, err := w.say(w.bob, root.ID, "in French", "k1"); err != nil || again.ID != first.ID {
			t.Errorf("the same key made %+v, %v", again, err)
		}
		if _, err := w.say(w.bob, root.ID, "in Dutch", "k1"); orchestrator.CodeOf(err) != orchestrator.CodeKeyReused {
			t.Errorf("another text under the same key: %v", err)
		}
		for _, text := range []string{"and short", "and now"} {
			if _, err := w.say(w.ann, root.TaskID, text, ""); err != nil {
				t.Fatal(err)
			}
		}
		r := w.request(root.TaskID, 1)
		d := w.delegation(root.ID)
		const want = "bob: in French; ann: and short; ann: and now"
		if d.Result == nil || d.Result.Text != "knew "+want || len(d.Work.Unread) != 0 || len(d.Work.Read) != 3 || d.Work.Read[0].ReadAt == nil {
			t.Errorf("the answer is %+v, kept %+v", d.Result, d.Work.Messages)
		}
		if n, m := w.count(root.TaskID, event.MessageSent), w.count(root.TaskID, event.MessageDelivered); n != 3 || m == 0 || m > 3 {
			t.Errorf("%d sent, %d times told\n%s", n, m, w.history(root.TaskID))
		}
		if _, err := w.decide(r, approval.Approve, ""); orchestrator.CodeOf(err) != orchestrator.CodeFourEyes {
			t.Errorf("bob, who told the agent what to do, approves it: %v", err)
		}
		if _, err := w.say(w.ann, root.ID, "wait", ""); orchestrator.CodeOf(err) != orchestrator.CodeConflict || !strings.Contains(err.Error(), "Request changes instead") {
			t.Errorf("said to an agent that waits for approval: %v", err)
		}
	})
}

// The turn that carries a message takes it off what is unread, in one transaction. What comes
// while the agent waits for a child stands until it goes on.
func TestATurnCarriesWhatPeopleSaid(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, model("kik"), agent.Spec{Name: "slow"})
		let := make(chan struct{})
		w.script("slow", func(ctx context.Context, _ agent.Job, _ agent.Host) (agent.Outcome, error) {
			select {
			case <-ctx.Done():
				return agent.Outcome{}, context.Cause(ctx)
			case <-let:
			}
			return agenttest.Done("slow"), nil
		})
		w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if len(job.Turns) == 0 {
				return agent.Outcome{Park: &agent.Park{Hops: []agent.Hop{{Ref: "a", To: "slow", Text: "x"}}}}, host.SaveTurn(ctx, calls(1, "a"), false)
			}
			if err := host.SaveTurn(ctx, replies(2, []string{"a"}, ids(job.Children)...), false); err != nil {
				return agent.Outcome{}, err
			}
			unread, err := host.Unread(ctx)
			if err != nil || len(unread) != 2 {
				return agent.Outcome{}, agent.Fail("test", "unread is %v: %v", unread, err)
			}
			turn := agent.Turn{N: 3, Message: agent.Message{Role: agent.FromUser}, Messages: []string{unread[0].ID, unread[1].ID}}
			if err := host.SaveTurn(ctx, turn, false); err != nil {
				return agent.Outcome{}, err
			}
			left, err := host.Unread(ctx)
			return agenttest.Done(heard(unread) + fmt.Sprint(len(left))), err
		})
		w.start()
		root := w.send("kik", "do it")
		w.state(root.ID, orchestrator.Waiting)
		for _, text := range []string{"first", "second"} {
			if _, err := w.say(w.bob, root.ID, text, ""); err != nil {
				t.Fatal(err)
			}
		}
		w.said(root.ID, 2, 0)
		close(let)
		d := w.state(root.ID, orchestrator.Completed)
		if d.Result.Text != "bob: first; bob: second0" || len(d.Work.Unread) != 0 || len(d.Work.Read) != 2 {
			t.Errorf("the answer is %q, kept %+v", d.Result.Text, d.Work.Messages)
		}
		if _, err := w.say(w.ann, root.ID, "too late", ""); orchestrator.CodeOf(err) != orchestrator.CodeEnded {
			t.Errorf("said to an agent that has ended: %v", err)
		}
	})
}

// Who steers the agent of a child has a part in the change of its caller.
func TestWhoSteersAChildHasAPartInItsCaller(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Repository: "app"}, agent.Spec{Name: "coder", Repository: "app", Protocol: "jsonl"})
		w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			child, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: "write it"})
			if err == nil {
				_, err = host.Await(ctx, child.ID)
			}
			return agenttest.Done("done"), err
		})
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			said, err := host.Hear(ctx, true)
			return agenttest.Done("ok"), errors.Join(err, writeFile(job.Dir, "new.txt", heard(said)))
		})
		w.start()
		root := w.send("kik", "do it")
		var child string
		w.until(root.ID, "waiting for coder", func(orchestrator.Delegation) bool {
			all, err := w.store.Children(t.Context(), root.ID, 0)
			if err == nil && len(all) == 1 {
				child = all[0].ID
			}
			return child != ""
		})
		if _, err := w.say(w.bob, root.ID, "hello", ""); orchestrator.CodeOf(err) != orchestrator.CodeCannotHear {
			t.Errorf("said to a plain program: %v", err)
		}
		if _, err := w.say(w.bob, child, "with a back door", ""); err != nil {
			t.Fatal(err)
		}
		r := w.request(root.TaskID, 1)
		if _, err := w.decide(r, approval.Approve, ""); orchestrator.CodeOf(err) != orchestrator.CodeFourEyes || !strings.Contains(err.Error(), "told") {
			t.Errorf("bob, who told coder what to do, approves it: %v", err)
		}
	})
}

// What nobody has read has a limit, and so has each message.
func TestSayingHasLimits(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Protocol: "jsonl"})
		root := w.send("coder", "nobody works on it") // the node does not run
		for i, c := range []struct{ text, code, says string }{
			{" \n ", orchestrator.CodeBadRequest, "no text"},
			{"a\x00b", orchestrator.CodeBadRequest, "no text"},
			{strings.Repeat("x", orchestrator.MaxMessage+1), orchestrator.CodeBadRequest, "8192 is the limit"},
			{strings.Repeat("x", orchestrator.MaxMessage), "", ""},
		} {
			if _, err := w.say(w.ann, root.ID, c.text, ""); orchestrator.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d: %v", i, err)
			}
		}
		for range 19 {
			if _, err := w.say(w.ann, root.ID, "more", ""); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.say(w.ann, root.ID, "more", ""); orchestrator.CodeOf(err) != orchestrator.CodeConflict || !strings.Contains(err.Error(), "20 messages") {
			t.Errorf("the 21st: %v", err)
		}
		if _, err := w.say(w.ann, "dlg_01kb0000000000000000000000", "hello", ""); !errors.Is(err, orchestrator.ErrNotFound) {
			t.Errorf("said to nobody: %v", err)
		}
	})
}

// What comes too late for a run stands on its request, and a run after "request changes" is
// told it before anything else.
func TestWhatCameTooLateIsToldToTheNextRun(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Repository: "app", Protocol: "jsonl"})
		begun, let := make(chan struct{}), make(chan struct{})
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if job.Revision > 1 {
				said, err := host.Hear(ctx, false)
				return agenttest.Done(heard(said)), errors.Join(err, writeFile(job.Dir, "new.txt", "two"))
			}
			close(begun)
			select {
			case <-ctx.Done():
			case <-let:
			}
			return agenttest.Done("one"), writeFile(job.Dir, "new.txt", "one")
		})
		w.start()
		root := w.send("coder", "write it")
		<-begun
		if _, err := w.say(w.ann, root.ID, "in French", ""); err != nil {
			t.Fatal(err)
		}
		close(let)
		r := w.request(root.TaskID, 1)
		if n := r.Revision.Notes; !slices.ContainsFunc(n, func(n patch.Note) bool { return n.Code == "unread" && strings.Contains(n.Text, `ann: "in French"`) }) {
			t.Errorf("the request's notes are %+v", n)
		}
		if _, err := w.decide(r, approval.RequestChanges, "Shorter."); err != nil {
			t.Fatal(err)
		}
		r = w.request(root.TaskID, 2)
		if d := w.delegation(root.ID); d.Result == nil || d.Result.Text != "ann: in French" || len(d.Work.Unread) != 0 {
			t.Errorf("the next run answers %+v", d.Result)
		}
		for _, n := range r.Revision.Notes {
			if n.Code == "unread" {
				t.Errorf("still unread: %+v", n)
			}
		}
	})
}
