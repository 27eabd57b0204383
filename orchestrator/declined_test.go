package orchestrator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
)

// planned is a world with a plan of two steps, of which the first changes files.
func planned(t *testing.T, url string, steps ...agent.Step) *world {
	w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.Workflow, Steps: steps},
		agent.Spec{Name: "coder", Repository: "app"}, agent.Spec{Name: "writer", Repository: "app"})
	w.script("coder", writes("core/a.txt", "changed\n"))
	w.script("writer", agenttest.Answer("told them"))
	w.start()
	return w
}

// A person's no to the change of a step ends the plan as what it is: rejected, with who and
// why, in no list of what went wrong, and counted as no failure.
func TestAPersonsNoIsNoFailureOfThePlan(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		since := time.Now().Add(-time.Minute)
		w := planned(t, url, agent.Step{ID: "change", Agent: "coder"}, agent.Step{ID: "tell", Agent: "writer"})
		root := w.send("kik", "Change it")
		r := w.request(root.TaskID, 1)
		if _, err := w.decide(r, approval.Reject, "Breaks resume"); err != nil {
			t.Fatal(err)
		}
		d := w.until(root.ID, "ended", func(d orchestrator.Delegation) bool { return d.State.Ended() })
		if d.State != orchestrator.Rejected || d.Error == nil || d.Error.Code != "rejected" || !strings.Contains(d.Error.Message, `bob rejected the change: "Breaks resume"`) {
			t.Fatalf("the root is %s with %+v", d.State, d.Error)
		}
		if _, n, err := w.store.Wrong(t.Context(), since, 8); err != nil || n != 0 {
			t.Errorf("%d tasks went wrong, %v", n, err)
		}
		var got insight.Figures
		for range 500 { // PostgreSQL shows an event once no older transaction is open
			if _, err := w.store.CountInsight(t.Context(), 500); err != nil {
				t.Fatal(err)
			}
			sums, err := w.store.AllTime(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got = insight.Of(sums); got.Ended["rejected"] == 2 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if got.Ended["rejected"] != 2 || got.Ended["failed"] != 0 || len(got.Failures) != 0 {
			t.Errorf("insights count %+v as ended and %+v as failures", got.Ended, got.Failures)
		}
	})
}

// Where nobody decides about a step's change in time, the plan ends as that: expired, with what
// nobody decided about; so does an agent that gave the work away. A retry asks again, and a
// yes then ends it well.
func TestAPlanOnWhichNobodyDecidesExpires(t *testing.T) {
	t.Parallel()
	w := planned(t, "sqlite:"+t.TempDir()+"/g.db", agent.Step{ID: "change", Agent: "coder"}, agent.Step{ID: "tell", Agent: "writer"})
	c := w.gateway.Config()
	patient := c.Expires
	c.Expires = time.Millisecond
	w.gateway.SetConfig(c)
	root := w.send("kik", "Change it")
	d := w.until(root.ID, "ended", func(d orchestrator.Delegation) bool { return d.State.Ended() })
	if d.State != orchestrator.Expired || d.Error == nil || d.Error.Code != "expired" ||
		!strings.Contains(d.Error.Message, "Step change (agent coder) ended expired: Nobody decided before the deadline.") {
		t.Fatalf("the root is %s with %+v", d.State, d.Error)
	}
	w.script("writer", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		_, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: "go on", Final: true})
		return agent.Outcome{}, err
	})
	if d := w.state(w.send("writer", "Give it away").ID, orchestrator.Expired); d.Error.Code != "expired" || !strings.HasPrefix(d.Error.Message, "Nobody decided before the deadline.") {
		t.Errorf("the agent that handed over ended with %+v", d.Error)
	}
	w.script("writer", agenttest.Answer("told them"))
	c.Expires = patient
	w.gateway.SetConfig(c)
	if _, err := w.engine.Retry(t.Context(), root.ID, w.ann); err != nil {
		t.Fatal(err)
	}
	if _, err := w.decide(w.request(root.TaskID, 1), approval.Approve, ""); err != nil {
		t.Fatal(err)
	}
	if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != "told them" || d.Error != nil {
		t.Errorf("after the retry the plan answered %q, %+v", d.Result.Text, d.Error)
	}
}

// A plan that says what follows a no goes on with it.
func TestAPlanGoesOnAfterANo(t *testing.T) {
	t.Parallel()
	w := planned(t, "sqlite:"+t.TempDir()+"/g.db", agent.Step{ID: "change", Agent: "coder"},
		agent.Step{ID: "tell", Agent: "writer", If: "steps.change.state == 'rejected'", Task: "Tell them: {{.Steps.change.Error}}"})
	root := w.send("kik", "Change it")
	if _, err := w.decide(w.request(root.TaskID, 1), approval.Reject, "Breaks resume"); err != nil {
		t.Fatal(err)
	}
	if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != "told them" {
		t.Errorf("the plan answered %q", d.Result.Text)
	}
}

// H18: with on_no: end anything but yes to a hand-over ends the task, whoever asked for it.
func TestANoToAHandoverEndsTheTaskWhereItsRuleSaysSo(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik"}, agent.Spec{Name: "coder", AskFirst: true})
		kik := w.script("kik", agenttest.HandOn("coder"))
		coder := w.script("coder", agenttest.Answer("done as asked"))
		c := w.gateway.Config()
		c.OnNo = policy.EndTask
		w.gateway.SetConfig(c)
		w.start()
		root := w.send("kik", "drop the tables")
		r := w.request(root.TaskID, 1)
		if r.Rule.OnNo != policy.EndTask {
			t.Fatalf("the request was asked under %+v", r.Rule)
		}
		if _, err := w.decide(r, approval.Reject, "Not on a Friday."); err != nil {
			t.Fatal(err)
		}
		d := w.until(root.ID, "ended", func(d orchestrator.Delegation) bool { return d.State.Ended() })
		if d.State != orchestrator.Rejected || d.Error == nil || !strings.Contains(d.Error.Message, "bob said no") || !strings.Contains(d.Error.Message, "Not on a Friday.") {
			t.Errorf("the root is %s with %+v", d.State, d.Error)
		}
		child := w.state(r.DelegationID, orchestrator.Rejected)
		if child.Error.Code != "human_refused" || coder.Runs() != 0 || kik.Runs() > 1 || w.count(root.TaskID, event.Failed) != 2 {
			t.Errorf("the child ended with %+v; runs of kik: %d", child.Error, kik.Runs())
		}
		// Nor does silence mean yes.
		c.Expires = time.Millisecond
		w.gateway.SetConfig(c)
		root = w.send("kik", "drop them tomorrow")
		d = w.until(root.ID, "ended", func(d orchestrator.Delegation) bool {
			if err := w.gateway.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			return d.State.Ended()
		})
		if d.State != orchestrator.Expired || !strings.Contains(d.Error.Message, "Nobody decided") || coder.Runs() != 0 {
			t.Errorf("after the deadline the root is %s with %+v", d.State, d.Error)
		}
	})
}
