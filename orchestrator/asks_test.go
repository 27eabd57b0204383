package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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

// rulesAboutActions puts rules about calls in force.
func (w *world) rulesAboutActions(rules ...policy.RuleConfig) {
	w.t.Helper()
	p, problems := policy.CompileActions(rules, nil)
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	c := w.gateway.Config()
	c.Actions = p
	w.gateway.SetConfig(c)
}

// expireAtOnce lets whatever is asked from now on expire at once.
func (w *world) expireAtOnce() {
	c := w.gateway.Config()
	c.Expires = time.Millisecond
	w.gateway.SetConfig(c)
}

func bash(command string) agent.Ask {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return agent.Ask{Action: &agent.Action{Tool: "Bash", Input: input}}
}

// caller is an agent whose program makes calls one after the other and answers with what came
// of them.
func caller(asks ...agent.Ask) agenttest.Script {
	return func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		var said []string
		for _, a := range asks {
			got, err := host.Ask(ctx, a)
			if err != nil {
				return agent.Outcome{}, err
			}
			said = append(said, strings.TrimSpace(fmt.Sprintf("%s %s %s", got.State, got.Input, got.Text)))
		}
		return agenttest.Done(strings.Join(said, "\n")), nil
	}
}

func shellAsks() policy.RuleConfig {
	return policy.RuleConfig{Name: "shell", When: `tool == "Bash" && not (input.command startsWith "go ")`, Need: new(1)}
}

// A call that a rule wants a yes for waits as a row, without a slot; the yes lets it go on,
// and what rules pass waits for nobody.
func TestACallOfAToolWaitsForAYes(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(shellAsks())
		w.script("coder", caller(bash("go test ./..."), bash("npm publish")))
		w.start()
		root := w.send("coder", "release it")
		r := w.request(root.TaskID, 1)
		if r.Kind != approval.Action || r.Action == nil || r.Action.Tool != "Bash" || r.DelegationID != root.ID || r.Title != "Call Bash: npm publish" {
			t.Fatalf("asked %+v", r)
		}
		if !strings.Contains(r.Revision.Text, "command: npm publish\n") || len(r.Revision.Digest) != 64 || r.Rule.Name != "shell" {
			t.Errorf("asked %q of rule %q, digest %q", r.Revision.Text, r.Rule.Name, r.Revision.Digest)
		}
		w.until(root.ID, "waiting without a slot", func(d orchestrator.Delegation) bool {
			used, _ := w.engine.Slots() // given back once the row waits
			return d.State == orchestrator.Waiting && used == 0
		})
		w.approve(r)
		d := w.state(root.ID, orchestrator.Completed)
		if d.Result.Text != `allowed {"command":"go test ./..."}`+"\n"+`allowed {"command":"npm publish"}` {
			t.Errorf("it answered %q", d.Result.Text)
		}
		if n := w.count(root.TaskID, event.Requested); n != 1 {
			t.Errorf("%d were asked", n)
		}
	})
}

// A no is read by the agent with its reason, a rule may deny, and the deadline is a no.
func TestACallThatMayNotBeMade(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(policy.RuleConfig{Name: "never", When: `input.command contains "rm -rf /"`, Deny: true}, shellAsks())
		w.script("coder", caller(bash("rm -rf /"), bash("npm publish"), bash("npm deploy")))
		w.start()
		root := w.send("coder", "release it")
		r := w.request(root.TaskID, 1)
		w.expireAtOnce()
		if _, err := w.decide(r, approval.Reject, "not on a Friday"); err != nil {
			t.Fatal(err)
		}
		d := w.state(root.ID, orchestrator.Completed)
		lines := strings.Split(d.Result.Text, "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], `rule "never"`) || !strings.Contains(lines[1], "bob said no") || !strings.Contains(lines[1], "not on a Friday") ||
			!strings.HasPrefix(lines[2], "expired") {
			t.Errorf("it answered %q", d.Result.Text)
		}
		if n := w.count(root.TaskID, event.Expired); n != 1 {
			t.Errorf("%d expired", n)
		}
		if n := w.count(root.TaskID, event.Requested); n != 2 {
			t.Errorf("%d were asked", n)
		}
	})
}

// The question outlives the node. The yes counts for the run that begins anew, once: what
// an attempt before may have made is asked again.
func TestAYesToACallOutlivesItsNode(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(shellAsks())
		made := make(chan string, 10)
		hang := true
		w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			got, err := host.Ask(ctx, bash("npm publish"))
			if err != nil {
				return agent.Outcome{}, err
			}
			made <- string(got.State)
			if hang {
				<-ctx.Done() // its node goes away in the middle of the call
				return agent.Outcome{}, ctx.Err()
			}
			return agenttest.Done("published"), nil
		})
		w.start()
		root := w.send("coder", "release it")
		first := w.request(root.TaskID, 1)
		w.stop()
		w.approve(first)
		w.start()
		if got := <-made; got != "allowed" {
			t.Fatalf("it was %s", got)
		}
		if n := w.count(root.TaskID, event.Requested); n != 1 {
			t.Errorf("%d were asked", n)
		}
		w.stop()
		hang = false
		w.start()
		second := w.request(root.TaskID, 1)
		if second.ID == first.ID {
			t.Fatal("the first yes was used twice")
		}
		if len(second.Revision.Notes) != 1 || second.Revision.Notes[0].Code != "may_have_run" {
			t.Errorf("the second says %+v", second.Revision.Notes)
		}
		w.approve(second)
		w.state(root.ID, orchestrator.Completed)
	})
}

// A name of an ask that was allowed allows nothing else.
func TestTheNameOfACallAllowsNoOther(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(shellAsks())
		small, large := bash("npm test"), bash("npm publish")
		small.Ref, large.Ref = "one", "one"
		w.script("coder", caller(small, large))
		w.start()
		root := w.send("coder", "release it")
		w.approve(w.request(root.TaskID, 1))
		r := w.request(root.TaskID, 1)
		if r.Title != "Call Bash: npm publish" {
			t.Errorf("asked %q", r.Title)
		}
		if _, err := w.decide(r, approval.Reject, "no"); err != nil {
			t.Fatal(err)
		}
		if d := w.state(root.ID, orchestrator.Completed); !strings.Contains(d.Result.Text, "refused") {
			t.Errorf("it answered %q", d.Result.Text)
		}
	})
}

// Of two who ask for the same at the same time each needs a yes of its own.
func TestTheSameCallTwiceAtOnce(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(shellAsks())
		w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			done := make(chan error, 2)
			for range 2 {
				go func() {
					got, err := host.Ask(ctx, bash("npm publish"))
					if err == nil && got.State != agent.AskAllowed {
						err = fmt.Errorf("it was %s", got.State)
					}
					done <- err
				}()
			}
			if err := <-done; err != nil {
				return agent.Outcome{}, err
			}
			return agenttest.Done("both"), <-done
		})
		w.start()
		root := w.send("coder", "release it")
		w.approve(w.request(root.TaskID, 1))
		w.approve(w.request(root.TaskID, 1))
		w.state(root.ID, orchestrator.Completed)
	})
}

// A grant covers the same words for the rest of the task, is counted, and ends at once when
// it is revoked, or when who gave it may not decide any more.
func TestAYesForTheRestOfTheTask(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(shellAsks())
		w.script("coder", caller(bash("npm test"), bash("npm test --watch"), bash("npm install x"), bash("npm test; rm x"), bash("npm test again")))
		w.start()
		root := w.send("coder", "test it")
		vote := func(r approval.Request, forTask bool) {
			t.Helper()
			_, err := w.gateway.Decide(t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(w.bob, nil), Channel: "api", Verdict: approval.Approve, Digest: r.Revision.Digest, ForTask: forTask})
			if err != nil {
				t.Fatal(err)
			}
		}
		vote(w.request(root.TaskID, 1), true)
		r := w.request(root.TaskID, 1)
		if !strings.Contains(r.Title, "npm install x") {
			t.Fatalf("asked next: %s", r.Title)
		}
		vote(r, false)
		r = w.request(root.TaskID, 1)
		if !strings.Contains(r.Title, "npm test; rm x") {
			t.Fatalf("asked next: %s", r.Title)
		}
		if _, err := w.gateway.Decide(t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(w.bob, nil), Channel: "api", Verdict: approval.Approve, Digest: r.Revision.Digest, ForTask: true}); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
			t.Errorf("two commands for the rest of the task: %v", err)
		}
		grants, err := w.gateway.Grants(t.Context(), root.TaskID)
		if err != nil || len(grants) != 1 || grants[0].Uses != 1 || grants[0].Agent != "coder" {
			t.Fatalf("grants %+v, %v", grants, err)
		}
		if _, err := w.gateway.Revoke(t.Context(), grants[0].ID, people.As(w.ann, nil)); err != nil { // who asked for the task may
			t.Fatal(err)
		}
		vote(r, false)
		if r = w.request(root.TaskID, 1); !strings.Contains(r.Title, "npm test again") {
			t.Fatalf("asked next: %s", r.Title)
		}
		vote(r, false)
		w.state(root.ID, orchestrator.Completed)
		if n := w.count(root.TaskID, event.GrantUsed) + w.count(root.TaskID, event.Granted) + w.count(root.TaskID, event.GrantRevoked); n != 3 {
			t.Errorf("%d events of grants", n)
		}
	})
}

// Who edits the input does not approve it; what is approved is what runs.
func TestTheInputOfACallIsEdited(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		cleo := w.user("cleo", people.Approver)
		w.rulesAboutActions(policy.RuleConfig{Name: "never", When: `input.command contains "rm"`, Deny: true}, shellAsks())
		w.script("coder", caller(bash("npm publish")))
		w.start()
		root := w.send("coder", "release it")
		r := w.request(root.TaskID, 1)
		edit := func(input string) (approval.Request, error) {
			return w.gateway.Decide(t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(w.bob, nil), Channel: "api", Verdict: approval.Edit, Digest: r.Revision.Digest, Input: json.RawMessage(input)})
		}
		for input, code := range map[string]string{`{"command":"rm x"}`: orchestrator.CodeForbidden, `{"command":"npm publish"}`: orchestrator.CodeBadRequest, `[]`: orchestrator.CodeBadRequest} {
			if _, err := edit(input); orchestrator.CodeOf(err) != code {
				t.Errorf("edited to %s: %v", input, err)
			}
		}
		after, err := edit(`{"command":"npm publish --dry-run"}`)
		if err != nil || after.State != approval.Pending || after.Revision.N != 2 || after.Revision.Digest == r.Revision.Digest {
			t.Fatalf("edited: %+v, %v", after, err)
		}
		if _, err := w.decide(after, approval.Approve, ""); orchestrator.CodeOf(err) != orchestrator.CodeFourEyes {
			t.Errorf("the editor's own yes: %v", err)
		}
		if _, err := w.decide(r, approval.Approve, ""); orchestrator.CodeOf(err) == "" {
			t.Error("the yes to the input before counted")
		}
		if _, err := w.gateway.Decide(t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(cleo, nil), Channel: "web", Verdict: approval.Approve, Digest: after.Revision.Digest}); err != nil {
			t.Fatal(err)
		}
		if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != `allowed {"command":"npm publish --dry-run"}` {
			t.Errorf("it answered %q", d.Result.Text)
		}
	})
}

// The end of a task ends what it asks, and a run that is over leaves no question behind.
func TestTheEndOfATaskEndsItsCalls(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(shellAsks())
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if strings.HasPrefix(job.Text, "leave") {
				asking, stop := context.WithCancel(ctx)
				done := make(chan error)
				go func() { _, err := host.Ask(asking, bash("npm publish")); done <- err }()
				w.request(job.TaskID, 1)
				stop()
				return agenttest.Done(fmt.Sprint(<-done)), nil
			}
			return caller(bash("npm publish"))(ctx, job, host)
		})
		w.start()
		root := w.send("coder", "release it")
		r := w.request(root.TaskID, 1)
		if _, err := w.engine.Cancel(t.Context(), root.TaskID, "ann"); err != nil {
			t.Fatal(err)
		}
		if after, err := w.gateway.Request(t.Context(), r.ID); err != nil || after.State != approval.Cancelled {
			t.Errorf("the request is %s, %v", after.State, err)
		}
		if _, err := w.decide(r, approval.Approve, ""); orchestrator.CodeOf(err) != orchestrator.CodeEnded {
			t.Errorf("a late yes: %v", err)
		}
		root = w.send("coder", "leave it")
		w.state(root.ID, orchestrator.Completed)
		page, err := w.gateway.Requests(t.Context(), approval.Filter{TaskID: root.TaskID})
		if err != nil || len(page.Items) != 1 || page.Items[0].State != approval.Cancelled {
			t.Errorf("left behind: %+v, %v", page.Items, err)
		}
		if h := w.history(root.TaskID); !strings.Contains(h, "does not wait for the answer any more") {
			t.Errorf("nothing tells that nobody waits:\n%s", h)
		}
	})
}

// A run that asks without end is a loop, and a task has only so many questions open.
func TestAskingHasLimits(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(shellAsks())
		w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			said := make(chan agent.Answer, 30)
			for i := range 30 {
				go func() {
					got, err := host.Ask(ctx, bash(fmt.Sprint("npm run ", i)))
					if err == nil {
						said <- got
					}
				}()
			}
			for range 10 {
				if got := <-said; got.State != agent.AskRefused || !strings.Contains(got.Text, "20 calls and questions") {
					return agenttest.Done(fmt.Sprintf("%+v", got)), nil
				}
			}
			return agenttest.Done("bounded"), nil
		})
		w.start()
		root := w.send("coder", "release it")
		if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != "bounded" {
			t.Errorf("it answered %q", d.Result.Text)
		}
	})
}

// An agent that only analyses is asked about whatever may change something, without any rule.
func TestAnAnalysisAsksBeforeItChangesAnything(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "reader", AnalysisOnly: true})
		read := bash("ls")
		read.Action.Hints.ReadOnly = new(true)
		w.script("reader", caller(read, bash("npm publish")))
		w.start()
		root := w.send("reader", "look")
		r := w.request(root.TaskID, 1)
		if !strings.Contains(r.Title, "npm publish") || r.Rule.Name != policy.InAnyCase {
			t.Fatalf("asked %q by %q", r.Title, r.Rule.Name)
		}
		w.approve(r)
		w.state(root.ID, orchestrator.Completed)
	})
}

// A question of an agent has one answer: by who asked for the task, by an approver, or by
// nobody.
func TestAnAgentAsksAPerson(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		ask := func(text string, choices ...string) agent.Ask {
			return agent.Ask{Question: &agent.Question{Text: text, Choices: choices}}
		}
		w.script("coder", caller(ask("Which colour?", "red", "blue"), ask("Why?"), ask("Anybody?")))
		w.start()
		root := w.send("coder", "paint it")
		r := w.request(root.TaskID, 1)
		if r.Kind != approval.Question || r.Question == nil || r.Title != "Which colour?" {
			t.Fatalf("asked %+v", r)
		}
		answer := func(r approval.Request, by people.User, b approval.Ballot) error {
			b.RequestID, b.Principal, b.Channel, b.Verdict, b.Digest = r.ID, people.As(by, nil), "web", approval.Respond, r.Revision.Digest
			_, err := w.gateway.Decide(t.Context(), b)
			return err
		}
		dan := w.user("dan", people.Operator)
		for name, c := range map[string]struct {
			err  error
			code string
		}{
			"a stranger":   {answer(r, dan, approval.Ballot{Choice: "red"}), orchestrator.CodeNotAnApprover},
			"no choice":    {answer(r, w.ann, approval.Ballot{Choice: "green"}), orchestrator.CodeBadRequest},
			"no answer":    {answer(r, w.ann, approval.Ballot{}), orchestrator.CodeBadRequest},
			"an approval":  {func() error { _, err := w.decide(r, approval.Approve, ""); return err }(), orchestrator.CodeBadRequest},
			"for the task": {answer(r, w.ann, approval.Ballot{Choice: "red", ForTask: true}), orchestrator.CodeBadRequest},
		} {
			if orchestrator.CodeOf(c.err) != c.code {
				t.Errorf("%s: %v", name, c.err)
			}
		}
		if err := answer(r, w.ann, approval.Ballot{Choice: "blue", Comment: "dark"}); err != nil {
			t.Fatal(err)
		}
		r = w.request(root.TaskID, 1)
		w.expireAtOnce()
		if err := answer(r, w.bob, approval.Ballot{Comment: "because"}); err != nil {
			t.Fatal(err)
		}
		d := w.state(root.ID, orchestrator.Completed)
		if !strings.HasPrefix(d.Result.Text, "answered  blue\n\ndark\nanswered  because\nexpired  Nobody answered.") {
			t.Errorf("it answered %q", d.Result.Text)
		}
	})
}
