package telegram

import (
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/orchestrator"
)

// H18, K44: the card asks in the words of the source, shows all that would be handed on,
// and offers a yes and a no.
func TestACardAsksAboutAHandover(t *testing.T) {
	r := approvaltest.Handover(approval.Pending)
	text, m := silent("", public).look(t, group, r, approvaltest.View(r))
	for _, part := range []string{"◆ Approval needed · hand-over to coder\nApprove handoff to coder? Context: Deploy to production\ndora → kik → coder\n",
		"no warnings · all of it below", "Deploy to production\nwith the new key", `"branch": "main"`, "[ Approve ] [ Reject ]\n[ Open the page ]"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if strings.Contains(text, "Changes") || strings.Contains(text, "rev 1") || strings.Contains(text, "diff") || units(m.Text) > cardLimit {
		t.Errorf("the card is about a patch:\n%s", text)
	}
}

// H18: a yes is offered only where all of the question is in the card; what cannot be seen
// is shown, and asks for care.
func TestAHandoverThatIsNotShownWholeIsApprovedOnItsPage(t *testing.T) {
	for name, q := range map[string]string{
		"long":            strings.Repeat("word ", 40_000),
		"longer than 900": strings.Repeat("word ", 200),
		"emoji":           strings.Repeat("😀", 500), // two units each
	} {
		r := approvaltest.Handover(approval.Pending)
		r.Handover.Text = q
		text, m := silent("", public).look(t, group, r, approvaltest.View(r))
		if strings.Contains(text, "[ Approve ]") || !strings.Contains(text, "To approve, open the page") || !strings.Contains(text, "[ Reject ]") || units(m.Text) > cardLimit {
			t.Errorf("%s: %d units\n%s", name, units(m.Text), text)
		}
	}
	r := approvaltest.Handover(approval.Pending)
	r.Handover.Text = "open *bold* <b>x</b> [a](http://e) gpj\u202eexe @all"
	text, m := silent("", public).look(t, group, r, approvaltest.View(r))
	if !strings.Contains(text, "gpj⟦U+202E⟧exe") || strings.Contains(m.Text, "\u202e") || !strings.Contains(text, "*bold* <b>x</b> [a](http://e)") {
		t.Errorf("the text is not as it stands:\n%s", text)
	}
	for _, e := range m.Entities {
		if e.Type != asBold && e.Type != asCode && e.Type != asPre {
			t.Errorf("the agent's text became markup: %+v", e)
		}
	}
}

// H18: the card says how it ended, and never that something landed.
func TestTheCardOfAHandoverSaysHowItEnded(t *testing.T) {
	for state, first := range map[approval.State]string{
		approval.Approved:  "⇥ Approved · handed to coder",
		approval.Rejected:  "⊖ Rejected · not handed to coder",
		approval.Expired:   "⌛ Expired, not approved · not handed to coder",
		approval.Cancelled: "■ Cancelled · not handed to coder",
		approval.Failed:    "✕ failed · not handed to coder",
	} {
		r := approvaltest.Handover(state)
		text, _ := silent("", public).look(t, group, r, approvaltest.View(r))
		if !strings.HasPrefix(text, first+"\n") || strings.Contains(text, "landed") || strings.Contains(text, "[ Approve ]") {
			t.Errorf("%s:\n%s", state, text)
		}
	}
	r := approvaltest.Handover(approval.Approved)
	if got := counted(r, approval.Approve, "", false); got != "Approved. The work is handed to coder." {
		t.Error(got)
	}
	if got := counted(approvaltest.Handover(approval.Rejected), approval.Reject, "", false); got != "Rejected. coder is not asked to work." {
		t.Error(got)
	}
	if title := (orchestrator.HandoverQuestion{To: "ops", Text: "  \nrestart\nall"}).Title(); title != "Approve handoff to ops? Context: restart" {
		t.Error(title)
	}
}
