package stream

import (
	"context"
	"encoding/json"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/people"
)

// chatMessage is one line of a chat. Type is thinking, progress, message, error or done.
type chatMessage struct {
	Type         string    `json:"type"`
	TaskID       string    `json:"task_id"`
	DelegationID string    `json:"delegation_id,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Text         string    `json:"text"`
	ApprovalID   string    `json:"approval_id,omitempty"`
	State        string    `json:"state,omitempty"` // with done
	N            int64     `json:"n,omitempty"`
	At           time.Time `json:"at"`
}

// chat makes a task of a message and streams what happens to it as chat messages.
func (w *socket) chat(ctx context.Context, in incoming) error {
	if !w.who.Has(people.TasksWrite) {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Sending tasks needs the right tasks:write.")
	}
	if in.Agent == "" {
		in.Agent = firstAgent(w.streams.Engine.Config().Agents)
	}
	t, root, _, err := w.streams.Engine.Submit(ctx, orchestrator.Submission{
		Agent: in.Agent, Text: in.Text, Repository: in.Repository, Key: in.Key, Via: "chat",
		RequesterID: w.who.User.ID, Requester: w.who.User.Name,
	})
	if err != nil {
		return err
	}
	return w.start(ctx, reader{taskID: t.ID, who: w.who}, &chatSink{w: w, ctx: ctx, rootID: root.ID})
}

// firstAgent is who takes a message that names nobody: the first that plans, else
// the first with the widest role, else the first there is.
func firstAgent(r *agent.Registry) string {
	if able := r.ByCapability("planning"); len(able) > 0 {
		return able[0].Name
	}
	all := r.All()
	for _, s := range all {
		if s.Role == agent.Admin {
			return s.Name
		}
	}
	if len(all) > 0 {
		return all[0].Name
	}
	return ""
}

// chatSink turns events into chat messages, until the root has ended.
type chatSink struct {
	w      *socket
	ctx    context.Context // of the connection; pump's
	rootID string
}

// eventData is what the chat reads of an event's data.
type eventData struct {
	Agent      string `json:"agent"`
	To         string `json:"to"`
	Text       string `json:"text"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	State      string `json:"state"`
	Verdict    string `json:"verdict"`
	Commit     string `json:"commit"`
	ApprovalID string `json:"approval_id"`
}

func (o *chatSink) gap(e event.Event) error { return o.w.json(e) }
func (o *chatSink) ping() error             { return nil }
func (o *chatSink) flush() error            { return nil }

func (o *chatSink) frame(f frame) error {
	e := f.event
	var d eventData
	// Data that is of another shape leaves the fields empty, which reads as less detail.
	_ = json.Unmarshal(e.Data, &d)
	m := chatMessage{Type: "progress", TaskID: e.TaskID, DelegationID: e.DelegationID, Agent: d.Agent, ApprovalID: d.ApprovalID, N: e.N, At: e.At}
	if m.Agent == "" {
		m.Agent = e.Actor
	}
	ended := e.Type == event.Completed || e.Type == event.Failed || e.Type == event.Cancelled
	if ended && e.DelegationID == o.rootID {
		return o.end(m, d)
	}
	if m.Type, m.Text = chatLine(e, d); m.Text == "" {
		return nil
	}
	return o.w.json(m)
}

// chatLine is the type and text of an event in a chat; no text leaves it out.
func chatLine(e event.Event, d eventData) (kind, text string) {
	switch e.Type {
	case event.Acknowledged:
		return "thinking", e.Actor + " works"
	case event.Progress:
		return "progress", d.Text
	case event.Delegated:
		return "progress", e.Actor + " hands to " + d.To
	case event.DelegationRefused, event.PatchRejected:
		return "progress", d.Message
	case event.Requested:
		return "progress", "A change waits for approval."
	case event.Decided:
		return "progress", e.Actor + ": " + d.Verdict
	case event.PatchLanded:
		return "progress", "Landed as " + d.Commit + "."
	case event.Completed, event.Failed, event.Cancelled:
		return "progress", d.Agent + " " + d.State
	}
	return "", ""
}

// end sends the answer or the error, then done.
func (o *chatSink) end(m chatMessage, d eventData) error {
	m.Type, m.Text = "error", d.Message
	if d.State == string(orchestrator.Completed) {
		root, err := o.w.streams.Reader.Delegation(o.ctx, o.rootID)
		if err != nil {
			return err
		}
		m.Type, m.Text = "message", ""
		if root.Result != nil {
			m.Text = root.Result.Text
		}
	}
	if err := o.w.json(m); err != nil {
		return err
	}
	m.Type, m.Text, m.State = "done", "", d.State
	if err := o.w.json(m); err != nil {
		return err
	}
	return errDone
}
