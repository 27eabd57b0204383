package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
)

// asking is a world in which kik hands its text to coder, and people are asked first.
func asking(t *testing.T, url string) (*world, *agenttest.Scripted) {
	w := newWorld(t, url, agent.Spec{Name: "kik"}, agent.Spec{Name: "coder", AskFirst: true})
	w.script("kik", agenttest.HandOn("coder"))
	coder := w.script("coder", agenttest.Answer("done as asked"))
	w.start()
	return w, coder
}

// H18: the hand-over waits for a person with the question in the source's words; nobody
// works meanwhile, and the yes lets the child run.
func TestAPersonIsAskedBeforeAHandover(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, coder := asking(t, url)
		root := w.send("kik", "Deploy to production\nwith the new key")
		r := w.request(root.TaskID, 1)
		if r.Kind != approval.Handover || r.Title != "Approve handoff to coder? Context: Deploy to production" {
			t.Fatalf("a request of kind %s asks %q", r.Kind, r.Title)
		}
		q := r.Handover
		if q == nil || q.From != "kik" || q.To != "coder" || q.Text != root.Text || len(r.Revision.Digest) != 64 || r.Chain.String() != "kik → coder" {
			t.Fatalf("the question is %+v of chain %q and digest %q", q, r.Chain, r.Revision.Digest)
		}
		child := w.state(r.DelegationID, orchestrator.AwaitingApproval)
		if child.ApprovalID != r.ID || child.ParentID != root.ID || coder.Runs() != 0 {
			t.Fatalf("the child is %+v and ran %d times", child, coder.Runs())
		}
		w.state(root.ID, orchestrator.Waiting)
		w.approve(r)
		if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != "done as asked" || coder.Runs() != 1 {
			t.Errorf("kik answered %q after %d runs", d.Result.Text, coder.Runs())
		}
		after, err := w.gateway.Request(t.Context(), r.ID)
		if err != nil || after.State != approval.Approved {
			t.Errorf("the request is %s, %v", after.State, err)
		}
		h := w.history(root.TaskID)
		if strings.Index(h, "approval.requested kik") > strings.Index(h, "approval.decided bob") || w.count(root.TaskID, event.PatchLanded) != 0 {
			t.Errorf("history:\n%s", h)
		}
	})
}

// H18: anything but yes ends that hand-over, as data for the caller, which goes on.
func TestANoToAHandoverIsReadByTheCaller(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, coder := asking(t, url)
		root := w.send("kik", "drop the tables")
		r := w.request(root.TaskID, 1)
		if _, err := w.decide(r, approval.Reject, "Not on a Friday."); err != nil {
			t.Fatal(err)
		}
		d := w.state(root.ID, orchestrator.Completed)
		if !strings.HasPrefix(d.Result.Text, "human_refused: ") || !strings.Contains(d.Result.Text, "Not on a Friday.") {
			t.Errorf("kik was told %q", d.Result.Text)
		}
		child := w.state(r.DelegationID, orchestrator.Rejected)
		if child.Error == nil || child.Error.Code != "human_refused" || coder.Runs() != 0 {
			t.Errorf("the child ended with %+v after %d runs", child.Error, coder.Runs())
		}
		if _, err := w.decide(r, approval.Approve, ""); orchestrator.CodeOf(err) != orchestrator.CodeAlreadyDecided {
			t.Errorf("a late yes got %v", err)
		}
	})
}

// H18: a yes is taken once, whatever channels it comes through and however many people
// press at the same moment; whoever loses is told, and coder runs at most once.
func TestTwoChannelsDecideOnAHandoverAtOnce(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w, coder := asking(t, url)
		cleo := w.user("cleo", people.Approver)
		root := w.send("kik", "go")
		r := w.request(root.TaskID, 1)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, b := range []approval.Ballot{
			{Principal: people.As(w.bob, nil), Channel: "telegram", Verdict: approval.Approve},
			{Principal: people.As(cleo, nil), Channel: "web", Verdict: approval.Reject, Comment: "no"},
		} {
			b.RequestID, b.Digest = r.ID, r.Revision.Digest
			wg.Go(func() { _, errs[i] = w.gateway.Decide(t.Context(), b) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("both or neither counted: %v, %v", errs[0], errs[1])
		}
		d := w.state(root.ID, orchestrator.Completed)
		if yes := errs[0] == nil; yes != (coder.Runs() == 1) || yes != (d.Result.Text == "done as asked") {
			t.Errorf("yes %v, %d runs, answer %q", errs[0] == nil, coder.Runs(), d.Result.Text)
		}
	})
}

// H18: the deadline is never a yes; four eyes hold; nothing can be changed in a question.
func TestWhatIsNoYesToAHandover(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, coder := asking(t, url)
		c := w.gateway.Config()
		root := w.send("kik", "go")
		r := w.request(root.TaskID, 1)
		both := w.ann
		both.Roles = []people.Role{people.Operator, people.Approver}
		if err := w.store.SetRoles(t.Context(), "test", both.ID, both.Roles); err != nil {
			t.Fatal(err)
		}
		vote := func(u people.User, v approval.Verdict, more func(*approval.Ballot)) string {
			b := approval.Ballot{RequestID: r.ID, Principal: people.As(u, nil), Channel: "api", Verdict: v, Digest: r.Revision.Digest, Comment: "c"}
			if more != nil {
				more(&b)
			}
			_, err := w.gateway.Decide(t.Context(), b)
			return orchestrator.CodeOf(err)
		}
		if code := vote(both, approval.Approve, nil); code != orchestrator.CodeFourEyes {
			t.Errorf("ann's yes to her own task got %q", code)
		}
		for name, code := range map[string]string{
			"changes": vote(w.bob, approval.RequestChanges, nil),
			"edit":    vote(w.bob, approval.Edit, func(b *approval.Ballot) { b.Patch = "x" }),
			"files":   vote(w.bob, approval.Approve, func(b *approval.Ballot) { b.Files = []string{"a"} }),
		} {
			if code != orchestrator.CodeBadRequest {
				t.Errorf("%s got %q", name, code)
			}
		}
		if code := vote(w.bob, approval.Approve, func(b *approval.Ballot) { b.Digest = strings.Repeat("0", 64) }); code != orchestrator.CodeSuperseded {
			t.Errorf("a yes to another digest got %q", code)
		}
		c.Expires = time.Millisecond
		w.gateway.SetConfig(c)
		root = w.send("kik", "go again")
		d := w.state(root.ID, orchestrator.Completed)
		if !strings.HasPrefix(d.Result.Text, "expired: ") || coder.Runs() != 0 {
			t.Errorf("after the deadline kik was told %q, and coder ran %d times", d.Result.Text, coder.Runs())
		}
	})
}

// H18: the task's end takes the question with it, and a task that is run again asks anew.
func TestAHandoversQuestionEndsWithItsTask(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w, coder := asking(t, url)
		root := w.send("kik", "go")
		r := w.request(root.TaskID, 1)
		if _, err := w.engine.Cancel(t.Context(), root.TaskID, "ann"); err != nil {
			t.Fatal(err)
		}
		after, err := w.gateway.Request(t.Context(), r.ID)
		if err != nil || after.State != approval.Cancelled {
			t.Fatalf("the request is %s, %v", after.State, err)
		}
		w.state(r.DelegationID, orchestrator.Cancelled)
		if _, err := w.engine.Retry(t.Context(), root.TaskID, w.ann); err != nil {
			t.Fatal(err)
		}
		again := w.request(root.TaskID, 1)
		if again.ID == r.ID || again.DelegationID == r.DelegationID || coder.Runs() != 0 {
			t.Fatal("the old question was used again")
		}
		if again.Revision.Digest != r.Revision.Digest {
			t.Error("the same question has another digest")
		}
		if _, err := w.decide(r, approval.Approve, ""); err == nil {
			t.Error("the old question still takes a yes")
		}
		w.approve(again)
		w.state(root.ID, orchestrator.Completed)
	})
}

// The yes and the queueing are one transaction: a node that stops right behind it leaves
// nothing to mend, and the next one runs the child.
func TestTheYesToAHandoverSurvivesItsNode(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w, coder := asking(t, url)
		root := w.send("kik", "go")
		r := w.request(root.TaskID, 1)
		w.stop()
		w.approve(r)
		if d := w.state(r.DelegationID, orchestrator.Queued); coder.Runs() != 0 {
			t.Fatalf("it is %s and ran without a node", d.State)
		}
		w.start()
		w.state(r.DelegationID, orchestrator.Completed)
		w.state(root.ID, orchestrator.Completed)
	})
}

// A yes may be taken back until somebody works on it.
func TestAYesToAHandoverIsTakenBack(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, _ := asking(t, url)
		root := w.send("kik", "go")
		r := w.request(root.TaskID, 1)
		w.stop()
		w.approve(r)
		if _, err := w.decide(r, approval.Withdraw, ""); err != nil {
			t.Fatal(err)
		}
		w.state(r.DelegationID, orchestrator.AwaitingApproval)
		w.start()
		w.approve(w.request(root.TaskID, 1))
		w.state(root.ID, orchestrator.Completed)
		if _, err := w.decide(r, approval.Withdraw, ""); orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			t.Errorf("taking it back from who has worked got %v", err)
		}
	})
}

// H18, K44: what the child changes is a question of its own, after that of the hand-over;
// the context that goes with a hand-over is written by the yes.
func TestTheWorkOfAnApprovedHandoverHasItsOwnQuestion(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik"}, agent.Spec{Name: "coder", AskFirst: true, Repository: "app"})
		w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			hop := agent.Hop{To: "coder", Text: "go", Ref: "one", Context: map[string]string{"branch": "main"}, Handover: &agent.Handover{Goto: "coder"}}
			first, err := host.Delegate(ctx, hop)
			if err != nil {
				return agent.Outcome{}, err
			}
			again, err := host.Delegate(ctx, hop)
			if err != nil || again.ID != first.ID {
				return agenttest.Done(fmt.Sprintf("the same hop is %s and then %s", first.ID, again.ID)), err
			}
			end, err := host.Await(ctx, first.ID)
			if err != nil || end.Result == nil {
				return agenttest.Done(fmt.Sprintf("it ended with %v", end.Error)), err
			}
			return agenttest.Done(end.Result.Text), nil
		})
		coder := w.script("coder", writes("core/a.txt", "new\n"))
		w.start()
		_, root, _, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: "kik", Text: "go", Via: origin.From(origin.Web), RequesterID: w.ann.ID, Requester: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		r := w.request(root.TaskID, 1)
		if !r.IsHandover() || r.Handover.Context["branch"] != "main" || r.Handover.Handover == nil {
			t.Fatalf("asked first: %+v", r)
		}
		if entries, err := w.store.Context("").Query(t.Context(), sharedctx.Handoff(root.TaskID), 10); err != nil || len(entries) != 0 {
			t.Errorf("what goes with the hand-over was written before the yes: %v, %v", entries, err)
		}
		w.approve(r)
		p := w.request(root.TaskID, 1)
		if p.ID == r.ID || p.Kind != approval.Patch || p.DelegationID != r.DelegationID {
			t.Fatalf("asked next: %+v", p)
		}
		w.approve(p)
		w.state(root.ID, orchestrator.Completed)
		if jobs := coder.Jobs(); len(jobs) != 1 || len(jobs[0].Context) != 1 || jobs[0].Context[0].Value != "main" {
			t.Errorf("coder was given %+v", jobs)
		}
		if after, err := w.gateway.Request(t.Context(), r.ID); err != nil || after.State != approval.Approved {
			t.Errorf("the hand-over's request is %s, %v", after.State, err)
		}
	})
}

// H18: rules say before which hand-overs people are asked, and which are refused; a dry
// run says so and asks nobody. A person's own task asks nobody.
func TestRulesAboutHandovers(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik"}, agent.Spec{Name: "coder"}, agent.Spec{Name: "ops", AskFirst: true})
		p, problems := policy.CompileHandovers([]policy.RuleConfig{
			{Name: "never", When: `text contains "rm -rf"`, Deny: true},
			{Name: "prod", When: `to == "coder" && text contains "production"`},
		}, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c := w.gateway.Config()
		c.Handovers = p
		w.gateway.SetConfig(c)
		w.script("kik", agenttest.HandOn("coder"))
		w.script("coder", agenttest.Answer("done"))
		w.script("ops", agenttest.Answer("ops did it"))
		w.start()
		for text, want := range map[string]string{"small things": "done", "rm -rf /": "human_refused: "} {
			if d := w.state(w.send("kik", text).ID, orchestrator.Completed); !strings.HasPrefix(d.Result.Text, want) {
				t.Errorf("%q ended with %q", text, d.Result.Text)
			}
		}
		w.state(w.send("ops", "my own task").ID, orchestrator.Completed)
		root := w.send("kik", "to production")
		if r := w.request(root.TaskID, 1); r.Rule.Name != "prod" {
			t.Errorf("asked by the rule %q", r.Rule.Name)
		}
		before := w.count(root.TaskID, event.Requested)
		verdicts, refused, err := w.engine.Check(t.Context(), "kik", "ops", "")
		if err != nil || refused != nil {
			t.Fatal(refused, err)
		}
		if last := verdicts[len(verdicts)-1]; last.Guard != "human" || !last.Allowed || !strings.HasPrefix(last.Message, "a person is asked first: 1 of") {
			t.Errorf("the dry run says %+v", last)
		}
		if w.count(root.TaskID, event.Requested) != before {
			t.Error("the dry run has asked somebody")
		}
	})
}
