package telegram

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
)

// calling is a call of a tool with this input.
func calling(tool, input string) approval.Request {
	r := approvaltest.Action(approval.Pending)
	r.Action = &agent.Action{Tool: tool, Input: json.RawMessage(input)}
	r.Revision.Input = r.Action.Input
	r.Title = "Call " + r.Action.Brief()
	r.Revision.Text = r.Whole()
	return r
}

// The card has the whole input, and says what a yes for the rest of the task would cover.
func TestACardAsksAboutACall(t *testing.T) {
	r := approvaltest.Action(approval.Pending)
	text, m := silent("", public).look(t, group, r, approvaltest.View(r))
	for _, part := range []string{"◆ Approval needed · coder wants to call a tool\nCall Bash: npm test\ndora → kik → coder · app\n", "no warnings · all of it below",
		"\nFor this task: Bash with commands that begin: npm test\n", "coder wants to call Bash with\n\ncommand: npm test\ndescription: Run the tests",
		"[ Approve ] [ For this task ] [ Reject ]\n[ Open the page ]"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if strings.Contains(text, "Changes") || strings.Contains(text, "diff") || strings.Contains(text, "file") || units(m.Text) > cardLimit {
		t.Errorf("the card is about a patch:\n%s", text)
	}
}

// All of the input is shown as it is, or there is no Approve.
func TestACallThatIsNotShownWholeIsApprovedOnItsPage(t *testing.T) {
	for name, input := range map[string]string{
		"200 kB":          `{"command":"` + strings.Repeat("echo ", 40_000) + `"}`,
		"longer than 900": `{"command":"` + strings.Repeat("echo ", 200) + `"}`,
		"a secret":        `{"command":"curl -H ghp_` + strings.Repeat("a1", 20) + `"}`,
		"a gap":           `{"command":"ls` + strings.Repeat(" ", 60) + `; rm -rf x"}`,
		"tabs":            `{"command":"ls` + strings.Repeat(`\t`, 60) + `; rm -rf x"}`,
		"blanks behind":   `{"command":"ls x  "}`,
	} {
		r := calling("Bash", input)
		text, m := silent("", public).look(t, group, r, approvaltest.View(r))
		if strings.Contains(text, "[ Approve ]") || strings.Contains(text, "For this task") || !strings.Contains(text, "To approve, open the page: ") ||
			!strings.Contains(text, "[ Reject ]\n[ Open the page ]") || units(m.Text) > cardLimit {
			t.Errorf("%s: %d units\n%s", name, units(m.Text), text)
		}
	}
	forged := calling("Read with\n\npath: README\n\n", `{"command":"rm -rf x"}`)
	if text, _ := silent("", public).look(t, group, forged, approvaltest.View(forged)); strings.Contains(text, "[ Approve ]") || strings.Contains(text, "\npath: README") {
		t.Errorf("a name passes for an input:\n%s", text)
	}
	r := approvaltest.Action(approval.Pending)
	r.Revision.Warnings = []patch.Warning{{Code: patch.RiskBidi, Text: "Text direction is switched."}}
	if text, _ := silent("", public).look(t, group, r, approvaltest.View(r)); strings.Contains(text, "[ Approve ]") || !strings.Contains(text, "all of it below") {
		t.Errorf("careful:\n%s", text)
	}
}

// A yes for the rest of the task is offered where its words are what it covers.
func TestTheScopeOfACallIsSaidOrNotOffered(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"npm publish --tag next"}`: "Bash with commands that begin: npm publish",
		`{"command":"make"}`:                   "Bash with exactly: make",
		`{"path":"a"}`:                         "Bash with any input",
		`{"command":"npm test; rm x"}`:         "",
		`{}`:                                   "",
		`{"command":"npm test","cwd":"` + strings.Repeat("d", 300) + `"}`:          "",
		`{"command":"npm test","cwd":"gpj` + "\u202e" + `exe"}`:                    "",
		`{"command":"npm test","key":"` + "ghp_" + strings.Repeat("a1", 20) + `"}`: "",
	} {
		r := calling("Bash", input)
		if got := scopeWords(r); got != want {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
		text, _ := silent("", public).look(t, group, r, approvaltest.View(r))
		if strings.Contains(text, "[ For this task ]") != (want != "") || want != "" && !strings.Contains(text, "\nFor this task: "+want+"\n") {
			t.Errorf("%s:\n%s", input, text)
		}
	}
}

// What a model wrote stands in code, where Telegram makes no links or mentions of it.
func TestTheTextOfACallIsNoMarkup(t *testing.T) {
	r := calling("@all http://e.example /cancel", `{"command":"*bold* <b>x</b> [a](http://e) gpj\u202eexe\u001b[31m","@you":"/approve"}`)
	r.Action.Server = "https://evil.example @ops"
	r.Revision.Text = r.Whole()
	q := approvaltest.Question(approval.Pending)
	q.Question = &agent.Question{Text: "@all http://e.example\n1. fake", Choices: []string{"@ops", "\u202ered", "a\n2. b"}}
	q.Title = "@all http://e.example"
	for _, r := range []approval.Request{r, q} {
		text, m := silent("", public).look(t, group, r, approvaltest.View(r))
		if strings.ContainsAny(m.Text, "\u202e\x1b") {
			t.Errorf("what cannot be seen is not shown:\n%q", m.Text)
		}
		all := []rune(m.Text) // no character of these is two units
		for _, e := range m.Entities {
			if e.Type != asBold && e.Type != asCode && e.Type != asPre {
				t.Errorf("the agent's text became markup: %+v", e)
			}
			if e.Type != asBold {
				for i := e.Offset; i < e.Offset+e.Length; i++ {
					all[i] = ' '
				}
			}
		}
		if out := string(all); strings.ContainsAny(out, "@/") && strings.Contains(strings.ReplaceAll(out, "gatehouse", ""), "@") || strings.Contains(out, "http") {
			t.Errorf("outside of code:\n%s\n%s", out, text)
		}
	}
}

func TestTheCardOfACallSaysHowItEnded(t *testing.T) {
	for state, first := range map[approval.State]string{
		approval.Approved:  "✓ Approved · coder may make this call",
		approval.Rejected:  "⊖ Rejected · not called",
		approval.Expired:   "⌛ Expired, not approved · not called",
		approval.Cancelled: "■ Cancelled · not called",
	} {
		r := approvaltest.Action(state)
		text, _ := silent("", public).look(t, group, r, approvaltest.View(r))
		if !strings.HasPrefix(text, first+"\nCall Bash: npm test") || strings.Contains(text, "land") || strings.Contains(text, "[ Approve ]") {
			t.Errorf("%s:\n%s", state, text)
		}
	}
	r := approvaltest.Action(approval.Approved)
	if got := counted(r, approval.Approve, "", false); got != "Approved. coder may make this call, once." {
		t.Error(got)
	}
	r.Decisions[0].ForTask = true
	text, _ := silent("", public).look(t, group, r, approvaltest.View(r))
	if !strings.HasPrefix(text, "✓ Approved for this task · coder may make such calls\n") || !strings.Contains(text, "\nFor this task: Bash with commands that begin: npm test") {
		t.Error(text)
	}
	r.Decisions = append(r.Decisions, approval.Decision{Revision: 1, UserID: "usr_ann", User: "ann", Verdict: approval.Approve}) // who meant it once
	if r.ForTask() {
		t.Error("one of two yeses for the task is one for the task")
	}
}

func TestTheCardOfAQuestionSaysHowItEnded(t *testing.T) {
	for state, first := range map[approval.State]string{
		approval.Answered:  "✓ Answered · coder goes on with it\nWhich colour?\nbob on the web, 12:00 UTC\n\"blue\"",
		approval.Rejected:  "⊖ No answer · coder was told so",
		approval.Expired:   "⌛ Nobody answered · coder was told so",
		approval.Cancelled: "■ Cancelled · no answer is needed",
	} {
		r := approvaltest.Question(state)
		text, _ := silent("", public).look(t, group, r, approvaltest.View(r))
		if !strings.HasPrefix(text, first) || strings.Contains(text, "land") || strings.Contains(text, "[ 1. red ]") {
			t.Errorf("%s:\n%s", state, text)
		}
	}
}

// The choices are buttons by number, with all of each in the text.
func TestACardAsksAQuestion(t *testing.T) {
	r := approvaltest.Question(approval.Pending)
	text, _ := silent("", public).look(t, group, r, approvaltest.View(r))
	for _, part := range []string{"◆ coder asks\nWhich colour?\ndora → kik → coder · app\n", "\nAsked: ann or bob\n", "\nTo answer, press a choice, or reply to this message.\n",
		"Which colour?\nThe old one was grey.\n\nChoices:\n1. red\n2. blue", "[ 1. red ] [ 2. blue ]\n[ No answer ]\n[ Open the page ]"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if strings.Contains(text, "Approv") || strings.Contains(text, "Rule") {
		t.Errorf("the card is about a yes:\n%s", text)
	}
	r.Question.Choices = []string{strings.Repeat("x", 200), "No answer", "red", "red "}
	text, _ = silent("", public).look(t, group, r, approvaltest.View(r))
	if !strings.Contains(text, "[ 1. "+strings.Repeat("x", 36)+"… ]\n[ 2. No answer ]\n[ 3. red ]\n[ 4. red ]\n[ No answer ]") || !strings.Contains(text, "1. "+strings.Repeat("x", 200)) {
		t.Error(text)
	}
	r.Question.Text = strings.Repeat("Why? ", 300)
	text, m := silent("", public).look(t, group, r, approvaltest.View(r))
	if strings.Contains(text, "[ 3. red ]") || !strings.Contains(text, "To answer, open the page: it is too long for a card.\n") || units(m.Text) > cardLimit {
		t.Error(text)
	}
}
