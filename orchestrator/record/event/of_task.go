package event

import (
	"fmt"
	"strings"
)

// What happens to a task and to its delegations.
const (
	TaskCreated       Type = "task.created"
	Paused            Type = "task.paused"
	Unpaused          Type = "task.resumed"
	Forked            Type = "task.forked"
	Queued            Type = "delegation.queued"
	Acknowledged      Type = "delegation.acknowledged"
	Progress          Type = "delegation.progress"
	Delegated         Type = "delegation.delegated"
	DelegationRefused Type = "delegation.refused"
	Waiting           Type = "delegation.waiting"
	Resumed           Type = "delegation.resumed"
	Completed         Type = "delegation.completed"
	Failed            Type = "delegation.failed"
	Cancelled         Type = "delegation.cancelled"
	Announced         Type = "delegation.announced" // a spawned child's end reached its caller
)

type TaskCreatedData struct {
	Agent       string `json:"agent"`
	Title       string `json:"title"`
	Repository  string `json:"repository"`
	Via         string `json:"via"`
	Complexity  string `json:"complexity,omitempty"`
	Independent bool   `json:"independent,omitempty"`
	Why         string `json:"why,omitempty"`
	Source      any    `json:"source,omitempty"`      // an orchestrator.Source
	Attachments any    `json:"attachments,omitempty"` // []agent.Attachment: name, size and digest of each
	Thread      string `json:"thread,omitempty"`      // the task that began the thread that it goes on with
}

func (d TaskCreatedData) sentence(Event, Words) string {
	return first(d.Title, d.Why, "is given to "+first(d.Agent, "an agent"))
}

type PausedData struct {
	Agent string `json:"agent"`
}

func (PausedData) sentence(Event, Words) string {
	return "pauses the task: models stop after the turn that they are at"
}

type UnpausedData struct {
	Agent    string `json:"agent"`
	PausedMS int64  `json:"paused_ms"`
}

func (UnpausedData) sentence(Event, Words) string { return "lets the task go on" }

// ForkedData is the data of Forked: From and FromTask in the new task, Task and Delegation
// in the one that it was made from.
type ForkedData struct {
	Agent      string `json:"agent"`
	FromTask   string `json:"from_task,omitempty"`
	From       string `json:"from,omitempty"`
	Task       string `json:"task,omitempty"`
	Delegation string `json:"delegation,omitempty"`
	Turn       int    `json:"turn"` // the last that was taken over
}

func (d ForkedData) sentence(Event, Words) string {
	after := ""
	if d.Turn != 0 {
		after = fmt.Sprintf(", after turn %d", d.Turn)
	}
	if d.FromTask != "" {
		return "goes on from another task" + after
	}
	return "makes another task from here" + after
}

type QueuedData struct {
	Agent        string        `json:"agent"`
	From         Maybe[string] `json:"from,omitzero"`
	Why          Maybe[string] `json:"why,omitzero"`
	FromRevision Maybe[int]    `json:"from_revision,omitzero"`
}

func (d QueuedData) sentence(Event, Words) string {
	return first(d.Why.V, Prefixed("from ", d.From.V), "waits for a free worker")
}

type AcknowledgedData struct {
	Agent   string `json:"agent"`
	Node    string `json:"node"`
	Attempt int    `json:"attempt"`
}

func (d AcknowledgedData) sentence(Event, Words) string {
	if d.Attempt > 1 {
		return "is worked on again"
	}
	return "starts"
}

// Codes of ProgressData.
const (
	LandingHeld = "landing_held" // a landing waits, and for whom
	RuleChanged = "rule_changed" // the rule under which people are asked is another now
)

// ProgressData is the data of Progress: what an agent printed, or with Check or Code what
// the house did for it.
type ProgressData struct {
	Text         string      `json:"text"`
	DroppedLines int         `json:"dropped_lines,omitempty"`
	Check        string      `json:"check,omitempty"` // the command
	OK           Maybe[bool] `json:"ok,omitzero"`
	Code         string      `json:"code,omitempty"`

	// With LandingHeld.
	Retry Maybe[bool] `json:"retry,omitzero"` // a person has to try it again

	// With RuleChanged.
	ApprovalID string          `json:"approval_id,omitempty"`
	Revision   int             `json:"revision,omitempty"`
	Rule       Maybe[string]   `json:"rule,omitzero"`
	Need       Maybe[int]      `json:"need,omitzero"`
	From       Maybe[[]string] `json:"from,omitzero"`
}

func (d ProgressData) sentence(Event, Words) string {
	return first(d.Text, "prints more than is shown")
}

type DelegatedData struct {
	To            string      `json:"to"`
	Child         string      `json:"child"`
	Title         string      `json:"title"`
	Guards        []string    `json:"guards"`             // that let it pass
	Steering      []string    `json:"steering,omitempty"` // changed files that steer programs
	TrustCheckout Maybe[bool] `json:"trust_checkout,omitzero"`
}

// maxSteeringNamed is how many files that steer programs a sentence names.
const maxSteeringNamed = 3

func (d DelegatedData) sentence(e Event, w Words) string {
	said := "to " + d.To + Prefixed(": ", d.Title)
	if len(d.Steering) == 0 {
		return said
	}
	names := strings.Join(d.Steering[:min(len(d.Steering), maxSteeringNamed)], ", ")
	if more := len(d.Steering) - maxSteeringNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return said + "; " + w.Steered(e.Actor, d.TrustCheckout.V) + ": " + names
}

type DelegationRefusedData struct {
	To      string `json:"to"`
	Code    string `json:"code"`
	Reason  string `json:"reason,omitempty"` // tells the cases of the code apart
	Message string `json:"message"`
	Guard   string `json:"guard"`
	Chain   string `json:"chain"`
}

func (d DelegationRefusedData) sentence(Event, Words) string {
	return "to " + d.To + Prefixed(": ", d.Message)
}

type WaitingData struct {
	Agent    string `json:"agent"`
	Children int    `json:"children"`
	Asks     int    `json:"asks,omitempty"` // calls and questions that people are asked
}

func (d WaitingData) sentence(Event, Words) string {
	var all []string
	switch {
	case d.Children == 1:
		all = append(all, "1 delegation below")
	case d.Children > 1 || d.Asks == 0:
		all = append(all, fmt.Sprintf("%d delegations below", d.Children))
	}
	switch {
	case d.Asks == 1:
		all = append(all, "an answer of people")
	case d.Asks > 1:
		all = append(all, fmt.Sprintf("%d answers of people", d.Asks))
	}
	return "waits for " + strings.Join(all, " and ")
}

type ResumedData struct {
	Agent      string `json:"agent"`
	Child      string `json:"child"`
	ChildState string `json:"child_state"`
	Request    string `json:"request,omitempty"` // whose answer came
}

func (d ResumedData) sentence(_ Event, w Words) string {
	switch {
	case d.Request != "":
		return "goes on: people have answered"
	case d.ChildState == "":
		return "goes on"
	}
	return "goes on: the one below is " + w.State(d.ChildState)
}

// End is the data of an event that ends a delegation.
type End struct {
	Agent   string        `json:"agent"`
	State   string        `json:"state"`
	Code    Maybe[string] `json:"code,omitzero"`
	Message Maybe[string] `json:"message,omitzero"`
	Reason  string        `json:"reason,omitempty"` // a person's words
}

type CompletedData struct {
	End
	Text   Maybe[string] `json:"text,omitzero"` // the title of the answer
	Commit string        `json:"commit,omitempty"`
}

func (d CompletedData) sentence(Event, Words) string {
	return first(d.Message.V, d.Text.V, d.State, "completed")
}

// FailedData is the data of Failed. Rejected and expired delegations have failed for whoever
// watches them; State tells which.
type FailedData struct{ End }

func (d FailedData) sentence(Event, Words) string { return first(d.Message.V, d.State, "failed") }

type CancelledData struct{ End }

func (d CancelledData) sentence(Event, Words) string {
	return first(d.Message.V, d.State, "cancelled")
}

type AnnouncedData struct {
	Turn     int      `json:"turn"`
	Children []string `json:"children"`
	Keys     []string `json:"keys"`
}

func (d AnnouncedData) sentence(Event, Words) string {
	if len(d.Children) == 1 {
		return "is told that a delegation that it spawned has ended"
	}
	return fmt.Sprintf("is told that %d delegations that it spawned have ended", len(d.Children))
}
