package handlers

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/record/event"
	"gatehouse/views"
)

// The types of chat messages.
const (
	ChatThinking = "thinking" // an agent works and has not said what on
	ChatProgress = "progress" // a step of the work
	ChatAnswer   = "message"  // the answer to the person
	ChatError    = "error"    // why there is no answer
	ChatDone     = "done"     // nothing more comes; State tells how it ended
)

// ChatMessage is one line of a chat, as the WebSocket and the API give it.
type ChatMessage struct {
	Type         string    `json:"type"`
	TaskID       string    `json:"task_id"`
	DelegationID string    `json:"delegation_id,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Text         string    `json:"text"`
	Code         string    `json:"code,omitempty"` // with error
	ApprovalID   string    `json:"approval_id,omitempty"`
	State        string    `json:"state,omitempty"`  // of the task, with done
	Key          string    `json:"key,omitempty"`    // of the message that this answers
	Thread       string    `json:"thread,omitempty"` // with Key: the thread that the message is in
	N            int64     `json:"n,omitempty"`      // of the event, the cursor to resume after
	At           time.Time `json:"at"`
	// Part is set where Text is a piece of what an agent is writing: thinking, or
	// progress. The answer itself comes once, whole, as a message.
	Part *ChatPart `json:"part,omitempty"`
	// Turn is set where what an agent wrote is complete and stored, in place of its parts.
	Turn int `json:"turn,omitempty"`
}

// ChatPart says which piece of which text this is.
type ChatPart struct {
	Turn   int    `json:"turn"`
	Kind   string `json:"kind"`           // text, thinking, tool, or reset: forget what came of this turn
	Tool   string `json:"tool,omitempty"` // that is being called
	Offset int    `json:"offset"`         // characters of this turn and kind before this piece
}

// chatPart is a piece of a message in a chat.
func chatPart(e event.Event) ChatMessage {
	p := event.Read[event.MessageDeltaData](e)
	m := ChatMessage{Type: ChatProgress, TaskID: e.TaskID, DelegationID: e.DelegationID, Agent: e.Actor, Text: p.Text, At: e.At,
		Part: &ChatPart{Turn: p.Turn, Kind: p.Kind, Tool: p.Tool, Offset: p.Offset}}
	if p.Kind == "thinking" {
		m.Type = ChatThinking
	}
	return m
}

// ChatLine is what an event says in a chat; ok is false where it says nothing. The
// end of the root is not a line: see ChatEnd.
func ChatLine(e event.Event) (m ChatMessage, ok bool) {
	if e.Type == event.MessageDelta {
		return chatPart(e), true
	}
	m = ChatMessage{Type: ChatProgress, TaskID: e.TaskID, DelegationID: e.DelegationID, Agent: cmp.Or(e.Agent(), e.Actor), N: e.N, At: e.At,
		ApprovalID: e.ApprovalID(), Text: ChatText(e)}
	switch e.Type {
	case event.Acknowledged, event.Resumed:
		m.Type = ChatThinking
	case event.MessageCompleted:
		m.Turn = e.Turn()
	}
	return m, m.Text != ""
}

// ChatText is the text of an event's line, "" for none.
func ChatText(e event.Event) string {
	switch p := e.Payload().(type) {
	case event.QueuedData:
		return cmp.Or(p.Agent, "It") + " is next in line" + event.Prefixed(": ", p.Why.V)
	case event.AcknowledgedData:
		if p.Attempt > 1 {
			return e.Actor + " works on it again"
		}
		return e.Actor + " works"
	case event.ResumedData:
		return cmp.Or(p.Agent, e.Actor) + " goes on"
	case event.ProgressData:
		return p.Text
	case event.MessageSentData:
		return e.Actor + " says to " + cmp.Or(p.Agent, "the agent") + event.Prefixed(": ", p.Text)
	case event.DelegatedData:
		return "handed to " + p.To + event.Prefixed(": ", p.Title)
	case event.DelegationRefusedData:
		return "could not hand to " + p.To + event.Prefixed(": ", p.Message)
	case event.PatchRejectedData:
		return p.Message
	case event.StaleData:
		return p.Message
	case event.WithdrawnRightData:
		return p.Message
	case event.OvertakenData:
		return p.Message
	case event.RequestedData:
		return "asks for a yes: " + p.Size()
	case event.DecidedData, event.ChangesRequestedData:
		v, startOver := event.VerdictOf(e)
		return e.Actor + " " + wasSaid(v.Verdict) + approval.Decision{StartOver: startOver}.Anew() + event.Prefixed(": ", v.Comment)
	case event.MessageCompletedData, event.ToolCompletedData, event.PatchLandedData, event.DeniedData:
		return EventLine(e)
	case event.CompletedData, event.FailedData, event.CancelledData:
		end := event.EndOf(e)
		return cmp.Or(end.Agent, e.Actor) + " " + views.StateWord(end.State) + event.Prefixed(": ", end.Message.V)
	}
	return ""
}

// wasSaid is a verdict as something that was done.
func wasSaid(verdict string) string {
	if verdict == string(approval.Withdraw) {
		return "withdrew the approval"
	}
	return badge.Did(verdict, "it")
}

// ChatEnd is what the end of a task's root says: the answer or the error, then done.
// ok is false while it lives.
func ChatEnd(root orchestrator.Delegation, n int64) (last []ChatMessage, ok bool) {
	if !root.State.Ended() {
		return nil, false
	}
	m := ChatMessage{Type: ChatError, TaskID: root.TaskID, DelegationID: root.ID, Agent: root.To, ApprovalID: root.ApprovalID, N: n, At: At(root.EndedAt)}
	switch {
	case root.State == orchestrator.Completed:
		m.Type = ChatAnswer
		if root.Result != nil {
			m.Text = root.Result.Text
		}
	case root.Error != nil:
		m.Code, m.Text = root.Error.Code, root.Error.Message
	default:
		m.Code, m.Text = string(root.State), "The task is "+views.StateWord(string(root.State))+"."
	}
	done := m
	done.Type, done.Text, done.Code, done.State = ChatDone, "", "", string(root.State)
	return []ChatMessage{m, done}, true
}

// EndsTask reports whether e is the end of the delegation with this id.
func EndsTask(e event.Event, rootID string) bool {
	return e.DelegationID == rootID && e.Type.Ends()
}

// words are how pages say what events tell.
var words = event.Words{
	State: views.StateWord,
	Verdict: func(verdict string, startOver bool) string {
		return views.VerdictWord(verdict) + approval.Decision{StartOver: startOver}.Anew()
	},
	Steered: func(by string, trusted bool) string { return views.SteeredWords(by, "the branch", trusted) },
}

// EventLine is one line of what an event says, beside its type and who did it.
func EventLine(e event.Event) string { return event.Sentence(e, words) }

// Doer is who stands beside an event: the person or rule that acted, else the agent.
func Doer(e event.Event, agent string) string {
	if e.Type.ByActor() {
		return e.Actor
	}
	return agent
}

// NewThread is what stands behind /new, with which a message begins another thread.
func NewThread(text string) (rest string, begins bool) {
	rest, begins = strings.CutPrefix(strings.TrimSpace(text), "/new")
	if r, _ := utf8.DecodeRuneInString(rest); !begins || rest != "" && !unicode.IsSpace(r) {
		return text, false
	}
	return strings.TrimSpace(rest), true
}

// Stored is what a message's sender is told: the task that it became, or that was told it.
func Stored(said orchestrator.Spoken, key string) ChatMessage {
	t := said.Task
	return ChatMessage{Type: ChatProgress, TaskID: t.ID, DelegationID: said.Root.ID, Agent: t.Agent, Text: "stored", State: string(said.Root.State),
		Key: key, Thread: t.ThreadID(), At: t.CreatedAt.UTC()}
}
