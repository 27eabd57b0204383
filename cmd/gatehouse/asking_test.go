package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
)

// askingTeam is ops, before whom a person is asked, and mia's two triggers that start it. ops
// leaves a line outside for each run.
const askingTeam = `
agents:
  ops: {kind: command, sandbox: off, analysis_only: true, ask_first: true, command: [sh, -c, 'cat > /dev/null; echo "$GATEHOUSE_DELEGATION_ID" >> "DIR/ran"; echo "done as asked"']}
triggers:
  - {name: ci-failed, kind: webhook, source: github, secret: "It's a Secret to Everybody", agent: ops, task: "Deploy {{.workflow_run.name}}", owner: mia}
  - {name: yearly, kind: schedule, cron: "0 0 1 1 *", missed: run, agent: ops, task: "Rotate the keys", owner: mia}
`

// Nobody is asked for the task of a trigger when it comes: before an agent that asks first
// somebody says yes, and not whose trigger it is.
func TestTriggersThatStartAnAgentThatAsksFirst(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, askingTeam)
		mia := p.Person("mia", people.Operator, people.Approver)
		_, err := p.Store.ScheduledUntil(t.Context(), "yearly", time.Now().AddDate(-2, 0, 0)) // as if it had been off for that long
		p.Must(err)
		n := p.Start(p.Config, "")
		sample, err := filepath.Abs("../../orchestrator/trigger/testdata/github_workflow_run.json")
		p.Must(err)
		body, err := os.ReadFile(sample)
		p.Must(err)

		bob := p.Approver
		p.Approver = mia // who speaks in the next lines
		if out, code := p.Cli(n, "triggers", "test", "ci-failed", sample, "--event", "workflow_run"); code != 0 || !strings.Contains(out, "It would start a task for ops") || !strings.Contains(out, "It waits for a person: somebody has to say yes before ops works on it.") {
			t.Errorf("a dry run: exit %d\n%s", code, out)
		}
		p.Approver = bob

		status, answer, err := deliver(n, "d1", body)
		if err != nil || status != http.StatusAccepted || answer["state"] != string(orchestrator.AwaitingApproval) {
			t.Fatalf("the delivery: %d %v %v", status, answer, err)
		}
		first := p.Asked(answer["id"])
		if !first.IsHandover() || first.Handover.From != "webhook ci-failed" || first.Handover.To != "ops" || !strings.HasPrefix(first.Handover.Text, "Deploy Build") || first.DelegationID != p.Root(first.TaskID).ID {
			t.Errorf("asked %+v", first.Handover)
		}
		if status, _, err := deliver(n, "d1", body); err != nil || status != http.StatusOK || len(p.Requests(first.TaskID)) != 1 {
			t.Errorf("its repeat: %d %v, %d requests", status, err, len(p.Requests(first.TaskID)))
		}
		if code, said := casts(n, mia, first, map[string]any{"verdict": "approve", "revision": 1}); code != http.StatusForbidden || said.Code != "four_eyes" {
			t.Errorf("the owner's yes: %d %+v", code, said)
		}
		if ran(p) != 0 {
			t.Error("ops worked without a yes")
		}
		if code, err := n.Decide(first); err != nil || code != http.StatusOK {
			t.Fatalf("bob's yes: %d %v", code, err)
		}
		p.Until("the end", func() bool { return p.Root(first.TaskID).State == orchestrator.Completed })
		if ran(p) != 1 || placetest.Count(p.Events(first.TaskID), event.VerdictRefused, "") != 1 {
			t.Errorf("%d runs", ran(p))
		}

		page, err := p.Store.Deliveries(t.Context(), trigger.Filter{Trigger: "ci-failed"})
		p.Must(err)
		var again struct {
			TaskID  string `json:"task_id"`
			Message string `json:"message"`
		}
		if code, err := n.Call(http.MethodPost, "/api/v1/deliveries/"+page.Items[0].ID+"/redeliver", mia, map[string]any{}, &again); err != nil || code != http.StatusAccepted || !strings.Contains(again.Message, "waits for a person") {
			t.Fatalf("delivered again: %d %v %+v", code, err, again)
		}
		second := p.Asked(again.TaskID)
		if code, said := casts(n, bob, second, map[string]any{"verdict": "reject", "revision": 1, "comment": "Not today."}); code != http.StatusOK {
			t.Fatalf("the no: %d %+v", code, said)
		}
		root := p.Root(second.TaskID)
		if root.State != orchestrator.Rejected || root.Error.Code != "human_refused" || !strings.Contains(root.Error.Message, "Not today.") || ran(p) != 1 {
			t.Errorf("after the no it is %s, %+v, %d runs", root.State, root.Error, ran(p))
		}

		var time trigger.Delivery
		p.Until("the time of the schedule", func() bool {
			page, err := p.Store.Deliveries(t.Context(), trigger.Filter{Trigger: "yearly"})
			p.Must(err)
			if len(page.Items) == 1 {
				time = page.Items[0]
			}
			return time.State == trigger.Started
		})
		third := p.Asked(time.TaskID)
		if third.Handover.From != "schedule yearly" || third.State != approval.Pending || !strings.Contains(time.Message, "waits for a person") || ran(p) != 1 {
			t.Errorf("the schedule asked %+v: %s", third.Handover, time.Message)
		}
		if code, said := casts(n, mia, third, map[string]any{"verdict": "approve", "revision": 1}); code != http.StatusForbidden || said.Code != "four_eyes" {
			t.Errorf("the owner's yes: %d %+v", code, said)
		}
		if code, err := n.Decide(third); err != nil || code != http.StatusOK {
			t.Fatalf("bob's yes: %d %v", code, err)
		}
		p.Until("the end", func() bool { return p.Root(third.TaskID).State == orchestrator.Completed })
		n.Stop()
	})
}
