package views

import (
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/people"
)

// chatFixture has every part of the chat, with hostile text wherever others write.
func chatFixture() ChatPage {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	hostile := "<script>alert(1)</script> \u202e \x1b[31m"
	row := ApprovalRow{ID: "apr_1", Title: hostile, State: "pending", Whose: "you", Agent: "coder", Repository: "app", Target: "main", Added: 48, Removed: 12, Files: 3, Need: 1, CreatedAt: now}
	done := row
	done.ID, done.State, done.Commit, done.DecidedBy = "apr_2", "landed", "4be1f02aaaa", "bob"
	step := ChatStep{Text: hostile, At: now}
	return ChatPage{
		Chrome:   Chrome{Title: "Chat", Section: SectionChat, Path: ChatPath, Person: person("ann", people.Operator, people.Approver), CanSend: true, Now: now},
		PersonID: "usr_1", MayWrite: true, LogPath: ChatPath, OlderHref: ChatPath + "?before=x",
		Send: SendForm{Agents: []Choice{{Value: "kik", Text: "kik"}, {Value: "coder", Text: "coder"}}, Agent: "coder", Repositories: []Choice{{Value: "app", Text: "app"}}, OptIn: true},
		Tasks: []ChatTask{{ID: "tsk_1", Text: hostile, At: now, Agent: "kik", State: "failed", EndedAt: now, Failure: &Failure{What: hostile, Where: "kik", Code: "exit"}, Hidden: 3,
			Turns: []ChatTurn{
				{ID: "dlg_1", Agent: "kik", At: now, Until: now.Add(4 * time.Second), State: "completed", Hops: []ChatHop{{To: "coder", ID: "dlg_2"}, {To: "kik", Refused: hostile}}},
				{ID: "dlg_2", Agent: "coder", At: now, State: "running", Steps: []ChatStep{step, step}, Before: 4, Changes: []ChatStep{step}, Says: hostile,
					Cards: []ChatCard{{ApprovalRow: row, Digest: "9f", CanReject: true, CanApprove: true}, {ApprovalRow: done, Verb: "approved", Channel: "telegram", Reason: hostile, DecidedAt: now}}}}}},
		Others: []ChatCard{{ApprovalRow: ApprovalRow{ID: "apr_3", Title: hostile, State: "pending"}, TaskID: "tsk_3", By: "dora", Says: hostile, CanReject: true, WhyNot: "To approve, open the diff: CI file changed."}},
	}
}

// What agents and others write is text: no markup, and what cannot be seen is a code point.
func TestTheChatShowsForeignTextAsItIs(t *testing.T) {
	html := render(t, Chat(chatFixture()))
	mustLack(t, html, "<script>alert", "\u202e", "\x1b")
	if got := strings.Count(html, "⟦U+202E⟧"); got < 9 {
		t.Errorf("%d of the direction overrides are shown as code points", got)
	}
}

// A decided card is one line that says who, where, and what became of it.
func TestADecidedCardIsOneLine(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for want, k := range map[string]ChatCard{
		"bob approved on Telegram, landed 4be1f02":               {ApprovalRow: ApprovalRow{State: "landed", Commit: "4be1f02aaa", DecidedBy: "bob"}, Verb: "approved", Channel: "telegram"},
		"ann rejected on the web, nothing landed":                {ApprovalRow: ApprovalRow{State: "rejected", DecidedBy: "ann"}, Verb: "rejected", Channel: "web"},
		"Rule docs approved, landing":                            {ApprovalRow: ApprovalRow{State: "approved", DecidedBy: "rule:docs"}, Verb: "approved", Channel: "rule"},
		"bob requested changes in chat, coder works on it again": {ApprovalRow: ApprovalRow{State: "changes_requested", DecidedBy: "bob", Agent: "coder"}, Verb: "requested changes", Channel: "chat"},
		"expired, ":                      {ApprovalRow: ApprovalRow{State: "expired"}, DecidedAt: at},
		"bob approved on the web, stale": {ApprovalRow: ApprovalRow{State: "stale", DecidedBy: "bob"}, Verb: "approved", Channel: "web"},
	} {
		if got := k.doneWords() + ", " + k.afterWords(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The yes is offered only where the handler says so; Review and Reject always.
func TestACardOffersWhatCounts(t *testing.T) {
	p := chatFixture()
	open, careful := p.Tasks[0].Turns[1].Cards[0], p.Others[0]
	mustContain(t, render(t, chatCard(open, p.Chrome)), ">Review<", ">Reject<", ">Request changes<", ">Approve<", `action="/chat/approvals/apr_1/decision"`)
	html := render(t, chatCard(careful, p.Chrome))
	mustContain(t, html, ">Review<", ">Reject<", "To approve, open the diff")
	mustLack(t, html, ">Approve<")
}
