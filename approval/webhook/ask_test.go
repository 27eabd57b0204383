package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/orchestrator/agent"
)

// A call is told of with its tool and not with its input.
func TestAMessageAboutACall(t *testing.T) {
	r := approvaltest.Action(approval.Pending)
	r.Action.Server, r.Action.Hints.Destructive = "deploy", new(true)
	m := sent(t, Standard, r)
	q := read(t, m).Data.Request
	if q.Kind != approval.Action || q.Title != "Call Bash: npm test" || q.Action == nil || q.Action.Tool != "Bash" || q.Action.Server != "deploy" || !*q.Action.Hints.Destructive ||
		q.Action.DelegationID != r.DelegationID || q.Action.Scope != "Bash of deploy with commands that begin: npm test" || q.Action.ForTask || q.Action.Edited || q.Question != nil {
		t.Errorf("told of %+v, %+v", q, q.Action)
	}
	if q.Deliver != "" || q.Target != "" {
		t.Errorf("a call is delivered: %q to %q", q.Deliver, q.Target)
	}
	if strings.Contains(m.body, "Run the tests") {
		t.Errorf("the input is in it: %s", m.body)
	}
	r = approvaltest.Action(approval.Approved)
	r.Decisions[0].ForTask, r.Revision.N, r.Decisions[0].Revision = true, 2, 2
	if q := read(t, sent(t, Standard, r)).Data.Request; !q.Action.ForTask || !q.Action.Edited || !q.Decisions[0].ForTask {
		t.Errorf("told of %+v", q)
	}
	_, all := blocks(t, sent(t, Slack, r).body)
	for _, part := range []string{"✓ Approved for this task · coder may make such calls", "for this task: Bash with commands that begin: npm test", "bob approved for this task"} {
		if text := strings.Join(all, "\n"); !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	for state, head := range map[approval.State]string{approval.Pending: "◆ Approval needed · coder wants to call a tool", approval.Approved: "✓ Approved · coder may make this call",
		approval.Rejected: "⊖ Rejected · not called", approval.Expired: "⌛ Expired, not approved · not called", approval.Cancelled: "■ Cancelled · not called"} {
		_, all := blocks(t, sent(t, Slack, approvaltest.Action(state)).body)
		text := strings.Join(all, "\n")
		if !strings.Contains(text, head+"*\n> Call Bash: npm test\n") || !strings.Contains(text, "\ncall of Bash · 9f2c1a7e") || strings.Contains(text, "land") || strings.Contains(text, "file") {
			t.Errorf("%s:\n%s", state, text)
		}
	}
}

func TestAMessageAboutAQuestion(t *testing.T) {
	q := read(t, sent(t, Standard, approvaltest.Question(approval.Pending)))
	if got := q.Data.Request.Question; q.Type != Requested || q.Data.Request.Kind != approval.Question || got == nil || got.Text != "Which colour?\nThe old one was grey." ||
		strings.Join(got.Choices, "|") != "red|blue" || got.Answer != "" || q.Data.Request.Action != nil {
		t.Errorf("told of %+v, %+v", q, got)
	}
	q = read(t, sent(t, Standard, approvaltest.Question(approval.Answered)))
	if got := q.Data.Request.Question; q.Type != Decided || got.Answer != "blue" || got.By != "bob" || q.Data.Request.Decisions[0].Verdict != approval.Respond {
		t.Errorf("told of %+v, %+v", q, got)
	}
	for state, head := range map[approval.State]string{approval.Pending: "◆ coder asks", approval.Answered: "✓ Answered · coder goes on with it", approval.Rejected: "⊖ No answer · coder was told so",
		approval.Expired: "⌛ Nobody answered · coder was told so", approval.Cancelled: "■ Cancelled · no answer is needed"} {
		_, all := blocks(t, sent(t, Slack, approvaltest.Question(state)).body)
		text := strings.Join(all, "\n")
		if !strings.Contains(text, head) || !strings.Contains(text, "“Which colour? The old one was grey.”\n1. red\n2. blue") || strings.Contains(text, "land") || strings.Contains(text, "file") {
			t.Errorf("%s:\n%s", state, text)
		}
	}
}

// What a model wrote links, calls and hides nothing, and takes no secret along.
func TestTheTextsOfCallsAndQuestionsAreEscaped(t *testing.T) {
	secret := "ghp_" + strings.Repeat("a1", 20)
	nasty := "<!channel> @all [a](http://e) \u202e & " + secret
	r := approvaltest.Action(approval.Pending)
	input, err := json.Marshal(map[string]string{"command": nasty})
	if err != nil {
		t.Fatal(err)
	}
	r.Action = &agent.Action{Tool: nasty, Server: nasty, Input: input}
	r.Revision.Input, r.Title = input, "Call "+r.Action.Brief()
	q := approvaltest.Question(approval.Answered)
	q.Question = &agent.Question{Text: nasty, Choices: []string{nasty}}
	q.Title, q.Decisions[0].Comment = nasty, nasty
	for _, r := range []approval.Request{r, q} {
		slack := sent(t, Slack, r).body
		text, all := blocks(t, slack)
		for _, part := range append(all, text) {
			if strings.Contains(part, "<!") || strings.Contains(part, "@") || strings.Contains(part, "](") || strings.Contains(part, "\u202e") {
				t.Errorf("not escaped:\n%s", part)
			}
		}
		if standard := sent(t, Standard, r).body; strings.Contains(slack, secret) || strings.Contains(standard, secret) {
			t.Errorf("a secret leaves:\n%s\n%s", slack, standard)
		}
	}
}
