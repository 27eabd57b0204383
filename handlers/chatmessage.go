package handlers

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/patch"
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
	State        string    `json:"state,omitempty"` // of the task, with done
	Key          string    `json:"key,omitempty"`   // of the message that this answers
	N            int64     `json:"n,omitempty"`     // of the event, the cursor to resume after
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
func chatPart(e event.Event) (m ChatMessage, ok bool) {
	var data struct {
		ChatPart
		Text string `json:"text"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return m, false
	}
	m = ChatMessage{Type: ChatProgress, TaskID: e.TaskID, DelegationID: e.DelegationID, Agent: e.Actor, Text: data.Text, At: e.At, Part: &data.ChatPart}
	if data.Kind == "thinking" {
		m.Type = ChatThinking
	}
	return m, true
}

// ChatLine is what an event says in a chat; ok is false where it says nothing. The
// end of the root is not a line: see ChatEnd.
func ChatLine(e event.Event) (m ChatMessage, ok bool) {
	if e.Type == event.MessageDelta {
		return chatPart(e)
	}
	f := factsOf(e)
	m = ChatMessage{Type: ChatProgress, TaskID: e.TaskID, DelegationID: e.DelegationID, Agent: first(f.Agent, e.Actor), ApprovalID: f.ApprovalID, N: e.N, At: e.At}
	if e.Type == event.Acknowledged || e.Type == event.Resumed {
		m.Type = ChatThinking
	}
	m.Text = chatText(e, f)
	if e.Type == event.MessageCompleted {
		m.Turn = f.Turn
	}
	return m, m.Text != ""
}

// chatText is the text of an event's line, "" for none.
func chatText(e event.Event, f eventFacts) string {
	switch e.Type {
	case event.Queued:
		return first(f.Agent, "It") + " is next in line" + prefixed(": ", f.Why)
	case event.Acknowledged:
		if f.Attempt > 1 {
			return e.Actor + " works on it again"
		}
		return e.Actor + " works"
	case event.Resumed:
		return first(f.Agent, e.Actor) + " goes on"
	case event.Progress:
		return first(f.Text, f.Message)
	case event.MessageCompleted, event.ToolCompleted:
		return modelLine(e, f)
	case event.Delegated:
		return "handed to " + f.To + prefixed(": ", f.Title)
	case event.DelegationRefused:
		return "could not hand to " + f.To + prefixed(": ", f.Message)
	case event.PatchRejected, event.Stale, event.WithdrawnRight, event.Overtaken, event.Expired:
		return first(f.Message, f.Text)
	case event.Requested:
		return fmt.Sprintf("asks for a yes: %s, +%d −%d", filesOf(f.Count), f.Added, f.Removed)
	case event.Decided, event.ChangesRequested:
		return e.Actor + " " + wasSaid(f.Verdict) + approval.Decision{StartOver: f.StartOver}.Anew() + prefixed(": ", f.Comment)
	case event.PatchLanded:
		if f.Deliver == patch.DeliverBranch {
			return fmt.Sprintf("pushed %.7s%s", f.Commit, prefixed(" to ", f.Branch))
		}
		return fmt.Sprintf("landed %.7s%s", f.Commit, prefixed(" on ", f.Branch))
	case event.Completed, event.Failed, event.Cancelled:
		return first(f.Agent, e.Actor) + " " + views.StateWord(f.State) + prefixed(": ", f.Message)
	}
	return ""
}

// filesOf counts files in words.
func filesOf(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
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
	m := ChatMessage{Type: ChatError, TaskID: root.TaskID, DelegationID: root.ID, Agent: root.To, ApprovalID: root.ApprovalID, N: n, At: at(root.EndedAt)}
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
	return e.DelegationID == rootID && slices.Contains([]event.Type{event.Completed, event.Failed, event.Cancelled}, e.Type)
}
