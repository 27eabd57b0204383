package orchestrator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Who may say what of a call and of a question: four eyes, the groups of the rule, roles, and
// whoever asked for the task.
func TestWhoMayDecideOnCallsAndQuestions(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		who := map[string]people.User{"bob": w.bob, "ann": w.ann}
		for name, roles := range map[string][]people.Role{
			"cleo": {people.Approver}, "dan": {people.Approver}, "both": {people.Operator, people.Approver}, "olga": {people.Operator}, "audrey": {people.Auditor}, "gone": {people.Approver},
		} {
			who[name] = w.user(name, roles...)
		}
		w.must(w.store.SetDisabled(t.Context(), "cli", who["gone"].ID, true))
		w.groupedRulesAboutActions(map[string][]string{"ops": {"cleo", "dan", "gone", "both"}},
			policy.RuleConfig{Name: "ops", When: `input.command startsWith "deploy"`, Need: new(1), From: []string{"ops"}},
			policy.RuleConfig{Name: "two", When: `input.command startsWith "npm"`, Need: new(2)},
			policy.RuleConfig{Name: "one", When: `tool == "Bash"`, Need: new(1)})
		question := agent.Ask{Question: &agent.Question{Text: "Which?"}}
		edit := func(command string) approval.Ballot {
			return approval.Ballot{Verdict: approval.Edit, Input: json.RawMessage(`{"command":"` + command + `"}`)}
		}
		yes, no, task := approval.Ballot{Verdict: approval.Approve}, approval.Ballot{Verdict: approval.Reject}, approval.Ballot{Verdict: approval.Approve, ForTask: true}
		answer := approval.Ballot{Verdict: approval.Respond, Comment: "this one"}
		type step struct {
			who    string
			ballot approval.Ballot
			code   string // "" where it counts
		}
		stories := map[string]struct {
			ask   agent.Ask
			steps []step
			end   string // how the agent's answer begins
		}{
			"roles":                       {bash("ls"), []step{{"olga", yes, orchestrator.CodeNotAnApprover}, {"audrey", no, orchestrator.CodeNotAnApprover}, {"gone", yes, orchestrator.CodeNotAnApprover}, {"bob", yes, ""}, {"cleo", no, orchestrator.CodeAlreadyDecided}}, "allowed"},
			"who asked for the task":      {bash("ls"), []step{{"both", yes, orchestrator.CodeFourEyes}, {"both", task, orchestrator.CodeFourEyes}, {"cleo", yes, ""}}, "allowed"},
			"who asked may say no":        {bash("ls"), []step{{"both", no, ""}}, "refused"},
			"the group of the rule":       {bash("deploy"), []step{{"bob", yes, orchestrator.CodeNotAnApprover}, {"bob", edit("deploy x"), orchestrator.CodeNotAnApprover}, {"bob", no, orchestrator.CodeNotAnApprover}, {"cleo", yes, ""}}, "allowed"},
			"the editor":                  {bash("ls"), []step{{"bob", edit("ls -l"), ""}, {"bob", yes, orchestrator.CodeFourEyes}, {"bob", task, orchestrator.CodeFourEyes}, {"cleo", yes, ""}}, `allowed {"command":"ls -l"}`},
			"the editor before an editor": {bash("ls"), []step{{"bob", edit("ls -l"), ""}, {"cleo", edit("ls -a"), ""}, {"bob", yes, orchestrator.CodeFourEyes}, {"cleo", yes, orchestrator.CodeFourEyes}, {"dan", yes, ""}}, `allowed {"command":"ls -a"}`},
			"an edit that others decide":  {bash("ls"), []step{{"bob", edit("deploy now"), ""}, {"bob", yes, orchestrator.CodeNotAnApprover}, {"dan", yes, ""}}, `allowed {"command":"deploy now"}`},
			"an edit ends the yeses":      {bash("npm a"), []step{{"bob", yes, ""}, {"cleo", edit("npm b"), ""}, {"dan", yes, ""}, {"cleo", yes, orchestrator.CodeFourEyes}, {"bob", yes, ""}}, `allowed {"command":"npm b"}`},
			"two":                         {bash("npm a"), []step{{"bob", yes, ""}, {"bob", yes, orchestrator.CodeAlreadyDecided}, {"both", yes, orchestrator.CodeFourEyes}, {"dan", yes, ""}}, "allowed"},
			"two, and one is taken back":  {bash("npm a"), []step{{"bob", yes, ""}, {"bob", approval.Ballot{Verdict: approval.Withdraw}, ""}, {"dan", yes, ""}, {"cleo", no, ""}}, "refused"},
			"a question":                  {question, []step{{"olga", answer, orchestrator.CodeNotAnApprover}, {"audrey", answer, orchestrator.CodeNotAnApprover}, {"gone", answer, orchestrator.CodeNotAnApprover}, {"both", answer, ""}, {"bob", answer, orchestrator.CodeAlreadyDecided}}, "answered  this one"},
			"a question of an approver":   {question, []step{{"bob", yes, orchestrator.CodeBadRequest}, {"bob", edit("x"), orchestrator.CodeBadRequest}, {"bob", answer, ""}}, "answered  this one"},
			"a question is turned away":   {question, []step{{"dan", no, ""}}, "refused"},
		}
		w.start()
		for name, story := range stories {
			w.script("coder", caller(story.ask))
			_, root, _, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: "coder", Text: name, Repository: "app", RequesterID: who["both"].ID, Requester: "both"})
			w.must(err)
			r := w.request(root.TaskID, 1)
			for i, s := range story.steps {
				after, err := w.vote(who[s.who], r, s.ballot)
				if orchestrator.CodeOf(err) != s.code {
					t.Errorf("%s: step %d, %s of %s: %v, want %q", name, i+1, s.ballot.Verdict, s.who, err, s.code)
				}
				if err == nil {
					r = after
				}
			}
			if d := w.state(root.ID, orchestrator.Completed); !strings.HasPrefix(d.Result.Text, story.end) {
				t.Errorf("%s: it answered %q, want %q", name, d.Result.Text, story.end)
			}
		}
	})
}

// What time does to calls and questions: nobody decides before the deadline, which the agent
// reads; a yes that comes late does not count.
func TestWhatTimeDoesToCallsAndQuestions(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(shellAsks())
		w.start()
		for name, c := range map[string]struct {
			ask   agent.Ask
			reads string
		}{
			"a call":     {bash("npm publish"), "Nobody decided on this call of Bash before the deadline, which is a no. Nothing ran."},
			"a question": {agent.Ask{Question: &agent.Question{Text: "Which?", Choices: []string{"a", "b"}}}, "Nobody answered."},
		} {
			w.script("coder", caller(c.ask))
			root := w.send("coder", name)
			r := w.request(root.TaskID, 1)
			w.stop()
			w.pass(2 * time.Hour)
			late := approval.Ballot{Verdict: approval.Approve}
			if r.IsQuestion() {
				late = approval.Ballot{Verdict: approval.Respond, Choice: "a"}
			}
			if _, err := w.vote(w.bob, r, late); orchestrator.CodeOf(err) != orchestrator.CodeExpired {
				t.Errorf("%s: a late verdict: %v", name, err)
			}
			w.start()
			if d := w.state(root.ID, orchestrator.Completed); !strings.Contains(d.Result.Text, c.reads) || !strings.HasPrefix(d.Result.Text, "expired") {
				t.Errorf("%s: it read %q", name, d.Result.Text)
			}
			if after, err := w.gateway.Request(t.Context(), r.ID); err != nil || after.State != approval.Expired || w.count(root.TaskID, event.Expired) != 1 {
				t.Errorf("%s: the request is %s, %v", name, after.State, err)
			}
		}
	})
}

// A task that is paused while it asks keeps its question, takes the yes, and makes the call when
// it goes on; one that is cancelled between the yes and the call makes none.
func TestAYesToATaskThatIsPausedOrCancelled(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Kind: agent.LLM})
		w.rulesAboutActions(shellAsks())
		made := make(chan string, 4)
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			out, err := parker(nil, named("a", bash("npm publish")))(ctx, job, host)
			if err == nil && out.Park == nil {
				made <- job.Text
			}
			return out, err
		})
		w.start()
		paused, cancelled := w.send("coder", "pause"), w.send("coder", "cancel")
		r := w.request(paused.TaskID, 1)
		_, err := w.engine.Pause(t.Context(), paused.TaskID, "ann")
		w.must(err)
		w.approve(r)
		c := w.request(cancelled.TaskID, 1)
		w.stop()
		w.approve(c)
		_, err = w.engine.Cancel(t.Context(), cancelled.TaskID, "ann")
		w.must(err)
		w.start()
		w.state(cancelled.ID, orchestrator.Cancelled)
		time.Sleep(100 * time.Millisecond)
		if len(made) != 0 {
			t.Fatalf("%s was made", <-made)
		}
		_, err = w.engine.Unpause(t.Context(), paused.TaskID, "ann")
		w.must(err)
		if d := w.state(paused.ID, orchestrator.Completed); d.Result.Text != `allowed {"command":"npm publish"}` || !strings.HasPrefix(<-made, "pause") || len(made) != 0 {
			t.Errorf("it answered %q", d.Result.Text)
		}
	})
}
