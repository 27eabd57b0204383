package orchestrator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// What somebody said too late for an earlier task of the thread is told to the follow-up, so
// they have a part in what that makes.
func TestWhoSpokeTooLateHasAPartInTheFollowUp(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Repository: "app", Protocol: "jsonl"})
		begun, let := make(chan struct{}), make(chan struct{})
		w.script("coder", func(ctx context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			if job.Text != "look" {
				return agenttest.Done("two"), writeFile(job.Dir, "new.txt", job.Text)
			}
			close(begun)
			select {
			case <-ctx.Done():
			case <-let:
			}
			return agenttest.Done("one"), nil
		})
		w.start()
		_, root, err := w.says(w.ann, "", "coder", "look")
		w.must(err)
		<-begun
		_, err = w.say(w.bob, root.ID, "with a back door", "")
		w.must(err)
		close(let)
		w.state(root.ID, orchestrator.Completed)
		_, next, err := w.says(w.ann, root.TaskID, "", "write it")
		w.must(err)
		r := w.request(next.TaskID, 1)
		_, err = w.decide(r, approval.Approve, "")
		w.refused(err, orchestrator.CodeFourEyes, "told")
	})
}

// An earlier task of a thread that is run again says other things by the time that its
// follow-up is run again: whoever had it run, and spoke there, has a part in that.
func TestWhoHadAnEarlierTaskRunAgainHasAPartInTheFollowUp(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Repository: "app", Protocol: "jsonl"})
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			switch {
			case job.Attempt == 1:
				return agent.Outcome{}, agent.Fail("test", "no")
			case job.Text != "look":
				return agenttest.Done("two"), writeFile(job.Dir, "new.txt", job.Text)
			}
			said, err := host.Hear(ctx, true)
			return agenttest.Done(heard(said)), err
		})
		w.start()
		one := w.follows("", "coder", "look", orchestrator.Failed)
		two := w.follows(one.TaskID, "", "write it", orchestrator.Failed)
		_, err := w.engine.Retry(t.Context(), one.ID, w.ann)
		w.must(err)
		_, err = w.say(w.bob, one.ID, "with a back door", "")
		w.must(err)
		w.state(one.ID, orchestrator.Completed)
		_, err = w.engine.Retry(t.Context(), two.ID, w.ann)
		w.must(err)
		r := w.request(two.TaskID, 1)
		_, err = w.decide(r, approval.Approve, "")
		w.refused(err, orchestrator.CodeFourEyes, "told")
	})
}

// The same key is the same words in the whole thread, also when it has gone on since.
func TestTheWordsOfAThreadAreTakenOnce(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Protocol: "jsonl"})
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if job.Text != "look" {
				return agenttest.Done("two"), nil
			}
			said, err := host.Hear(ctx, true)
			return agenttest.Done(heard(said)), err
		})
		w.start()
		_, root, err := w.says(w.ann, "", "coder", "look")
		w.must(err)
		say := func() (orchestrator.Spoken, error) {
			return w.engine.Say(t.Context(), orchestrator.Submission{Text: "in French", Follows: root.TaskID, Key: "k", RequesterID: w.ann.ID, Requester: "ann"}, w.ann)
		}
		first, err := say()
		w.must(err)
		w.state(root.ID, orchestrator.Completed)
		w.follows(root.TaskID, "", "go on", orchestrator.Completed)
		again, err := say()
		if err != nil || again.Message == nil || first.Message == nil || again.Message.ID != first.Message.ID {
			t.Errorf("said again %+v, %v; first %+v", again, err, first)
		}
	})
}

// A follow-up that is sent again by its key is the same task, also in a thread with files.
func TestAFollowUpInAThreadWithFilesIsTakenOnce(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.script("coder", func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) { return agenttest.Done("ok"), nil })
		w.start()
		send := func(after, key string, files ...agent.File) (orchestrator.Task, bool, error) {
			task, root, made, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: "coder", Text: "look", Follows: after, Key: key, Attachments: files, RequesterID: w.ann.ID, Requester: "ann"})
			if err == nil {
				w.state(root.ID, orchestrator.Completed)
			}
			return task, made, err
		}
		one, _, err := send("", "", agent.File{Name: "a.txt", Data: []byte("a")})
		w.must(err)
		for _, files := range [][]agent.File{nil, {{Name: "b.txt", Data: []byte("b")}}} {
			key := fmt.Sprint(len(files))
			first, _, err := send(one.ID, key, files...)
			w.must(err)
			again, made, err := send(one.ID, key, files...)
			if err != nil || made || again.ID != first.ID {
				t.Errorf("%d files, sent again: %v %s, first %s: %v", len(files), made, again.ID, first.ID, err)
			}
		}
		if _, _, err := send(one.ID, "1", agent.File{Name: "b.txt", Data: []byte("c")}); orchestrator.CodeOf(err) != orchestrator.CodeKeyReused {
			t.Errorf("other files under the same key: %v", err)
		}
	})
}

// A yes to calls for the rest of a task, of somebody who tells its agent since then what to
// call, passes none of them: another approver is asked.
func TestAGrantOfWhoSteersPassesNothing(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Protocol: "jsonl"})
		cleo := w.user("cleo", people.Approver)
		w.rulesAboutActions(policy.RuleConfig{Name: "one", When: `tool == "deploy"`, Need: new(1)})
		w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			if _, err := host.Ask(ctx, tool("deploy", `{"to":"test"}`)); err != nil {
				return agent.Outcome{}, err
			}
			said, err := host.Hear(ctx, true)
			if err != nil {
				return agent.Outcome{}, err
			}
			_, err = host.Ask(ctx, tool("deploy", fmt.Sprintf(`{"to":%q}`, said[0].Text)))
			return agenttest.Done("ok"), err
		})
		w.start()
		root := w.send("coder", "release it")
		_, err := w.vote(w.bob, w.request(root.TaskID, 1), approval.Ballot{Verdict: approval.Approve, ForTask: true})
		w.must(err)
		_, err = w.say(w.bob, root.ID, "prod", "")
		w.must(err)
		r := w.request(root.TaskID, 1)
		_, err = w.vote(w.bob, r, approval.Ballot{Verdict: approval.Approve})
		w.refused(err, orchestrator.CodeFourEyes, "told")
		_, err = w.vote(cleo, r, approval.Ballot{Verdict: approval.Approve})
		w.must(err)
		w.state(root.ID, orchestrator.Completed)
		if n := w.count(root.TaskID, event.GrantUsed); n != 0 {
			t.Errorf("the grant was used %d times", n)
		}
	})
}

// What one agent of a task was told it may repeat on the board, where the others read it while
// both work: whoever said it has a part in what those make from then on.
func TestWhoSteersAnAgentHasAPartInWhatOthersReadOfIt(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik"}, agent.Spec{Name: "scout", Protocol: "jsonl"}, agent.Spec{Name: "coder", Repository: "app"})
		let := make(chan struct{})
		w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			for _, h := range []agent.Hop{{To: "scout", Text: "look", Spawn: true}, {To: "coder", Text: "write it", Spawn: true}} {
				if _, err := host.Delegate(ctx, h); err != nil {
					return agent.Outcome{}, err
				}
			}
			select {
			case <-ctx.Done():
			case <-let:
			}
			return agenttest.Done("done"), nil
		})
		w.script("scout", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			said, err := host.Hear(ctx, true)
			if err == nil {
				err = host.PutContext(ctx, agent.ContextWrite{Key: "hint", Value: said[0].Text})
			}
			if err != nil {
				return agent.Outcome{}, err
			}
			select {
			case <-ctx.Done():
			case <-let:
			}
			return agenttest.Done("seen"), nil
		})
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			for {
				hint, found, err := host.Shared().Get(ctx, "", "hint")
				if err != nil {
					return agent.Outcome{}, err
				}
				if found {
					return agenttest.Done("ok"), writeFile(job.Dir, "new.txt", hint.Value)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		w.start()
		defer close(let)
		root := w.sendTo("kik", "do it")
		var scout string
		w.until(root.ID, "with both spawned", func(orchestrator.Delegation) bool {
			all, err := w.store.Children(t.Context(), root.ID, 0)
			w.must(err)
			for _, c := range all {
				if c.To == "scout" && c.State == orchestrator.Running && len(all) == 2 {
					scout = c.ID
				}
			}
			return scout != ""
		})
		_, err := w.say(w.bob, scout, "with a back door", "")
		w.must(err)
		_, err = w.decide(w.request(root.TaskID, 1), approval.Approve, "")
		w.refused(err, orchestrator.CodeFourEyes, "told")
	})
}
