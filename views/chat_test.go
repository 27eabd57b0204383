package views_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/people"
	"gatehouse/views"
	chatview "gatehouse/views/chat"
)

// chatFixture has every part of the chat, with hostile text wherever others write.
func chatFixture() chatview.ChatPage {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	hostile := "<script>alert(1)</script> \u202e \x1b[31m"
	row := views.ApprovalRow{ID: "apr_1", Title: hostile, State: "pending", Whose: "you", Agent: "coder", Repository: "app", Target: "main", Added: 48, Removed: 12, Files: 3, Need: 1, CreatedAt: now}
	done := row
	done.ID, done.State, done.Commit, done.DecidedBy = "apr_2", "landed", "4be1f02aaaa", "bob"
	step := chatview.ChatStep{Text: hostile, At: now}
	return chatview.ChatPage{
		Chrome:   views.Chrome{Title: "Chat", Section: views.SectionChat, Path: views.ChatPath, Person: person("ann", people.Operator, people.Approver), CanSend: true, Now: now},
		PersonID: "usr_1", MayWrite: true, LogPath: views.ChatPath, OlderHref: views.ChatPath + "?before=x",
		Send: views.SendForm{Agents: []views.Choice{{Value: "kik", Text: "kik"}, {Value: "coder", Text: "coder"}}, Agent: "coder", Repositories: []views.Choice{{Value: "app", Text: "app"}}, OptIn: true},
		Tasks: []chatview.ChatTask{{ID: "tsk_1", Text: hostile, At: now, Agent: "kik", State: "failed", EndedAt: now, Failure: &views.Failure{What: hostile, Where: "kik", Code: "exit"}, Hidden: 3,
			Turns: []chatview.ChatTurn{
				{ID: "dlg_1", Agent: "kik", At: now, Until: now.Add(4 * time.Second), State: "completed", Hops: []chatview.ChatHop{{To: "coder", ID: "dlg_2"}, {To: "kik", Refused: hostile}}},
				{ID: "dlg_2", Agent: "coder", At: now, State: "running", Steps: []chatview.ChatStep{step, step}, Before: 4, Changes: []chatview.ChatStep{step}, Says: hostile,
					Cards: []chatview.ChatCard{{ApprovalRow: row, Digest: "9f", CanReject: true, CanApprove: true}, {ApprovalRow: done, Verb: "approved", Channel: "telegram", Reason: hostile, DecidedAt: now}}}}}},
		Others: []chatview.ChatCard{{ApprovalRow: views.ApprovalRow{ID: "apr_3", Title: hostile, State: "pending"}, TaskID: "tsk_3", By: "dora", Says: hostile, CanReject: true, WhyNot: "To approve, open the diff: CI file changed."}},
	}
}

// What agents and others write is text: no markup, and what cannot be seen is a code point.
func TestTheChatShowsForeignTextAsItIs(t *testing.T) {
	html := render(t, chatview.Chat(chatFixture()))
	mustLack(t, html, "<script>alert", "\u202e", "\x1b")
	if got := strings.Count(html, "⟦U+202E⟧"); got < 9 {
		t.Errorf("%d of the direction overrides are shown as code points", got)
	}
}

// The yes is offered only where the handler says so; Review and Reject always.
func TestACardOffersWhatCounts(t *testing.T) {
	p := chatFixture()
	open, careful := p.Tasks[0].Turns[1].Cards[0], p.Others[0]
	mustContain(t, render(t, chatview.Card(open, p.Chrome)), ">Review<", ">Reject<", ">Request changes<", ">Approve<", `action="/chat/approvals/apr_1/decision"`)
	html := render(t, chatview.Card(careful, p.Chrome))
	mustContain(t, html, ">Review<", ">Reject<", "To approve, open the diff")
	mustLack(t, html, ">Approve<")
}
