package event

import (
	"fmt"
	"strings"

	"gatehouse/orchestrator/origin"
)

// What becomes of a question to people.
const (
	Requested        Type = "approval.requested"
	Notified         Type = "approval.notified"
	Decided          Type = "approval.decided"
	ChangesRequested Type = "approval.changes_requested"
	Superseded       Type = "approval.superseded"
	Expired          Type = "approval.expired"
	Stale            Type = "approval.stale"
	Reminded         Type = "approval.reminded"
	Escalated        Type = "approval.escalated"
	CommentReplied   Type = "approval.comment_replied" // under a line comment that was sent
	CommentResolved  Type = "approval.comment_resolved"
	CommentReopened  Type = "approval.comment_reopened"
	VerdictRefused   Type = "approval.refused"   // a verdict that did not count, from a channel
	Overtaken        Type = "approval.overtaken" // the branch changed so that a yes would land nothing, or back
	Granted          Type = "approval.granted"   // a yes to calls of one kind for the rest of a task
	GrantUsed        Type = "approval.grant_used"
	GrantRevoked     Type = "approval.grant_revoked"
	Denied           Type = "approval.denied"          // a call that a rule does not let its agent make; nobody was asked
	WithdrawnRight   Type = "approval.withdrawn_right" // a yes no longer counts at landing, so people are asked again
)

// About is the revision of a request that an event is about.
type About struct {
	ApprovalID string `json:"approval_id,omitempty"`
	Revision   int    `json:"revision,omitempty"`
	Digest     string `json:"digest,omitempty"`
	Kind       string `json:"kind,omitempty"` // of the question where it is no patch
}

// RequestedData is the data of Requested. A hand-over has To and Title, and what is left out
// of it has no change.
type RequestedData struct {
	About
	Rule       string        `json:"rule"`
	Need       int           `json:"need"`
	From       []string      `json:"from"`
	Repository string        `json:"repository"`
	Warnings   []string      `json:"warnings"`
	ExpiresAt  string        `json:"expires_at,omitempty"`
	Branch     Maybe[string] `json:"branch,omitzero"`
	Files      Maybe[int]    `json:"files,omitzero"`
	Added      Maybe[int]    `json:"added,omitzero"`
	Removed    Maybe[int]    `json:"removed,omitzero"`

	To        Maybe[string] `json:"to,omitzero"`
	Title     Maybe[string] `json:"title,omitzero"`
	Tree      Maybe[string] `json:"tree,omitzero"` // that is handed over
	Base      Maybe[string] `json:"base,omitzero"`
	FilesHash Maybe[string] `json:"files_sha256,omitzero"`

	Tool   Maybe[string] `json:"tool,omitzero"` // that would be called
	Server string        `json:"server,omitempty"`
}

func (d RequestedData) sentence(Event, Words) string {
	switch d.Kind {
	case KindAction:
		return "asks for a yes to a call" + Prefixed(": ", d.Title.V)
	case "question":
		return "asks people" + Prefixed(": ", d.Title.V)
	}
	return "asks for a yes: " + d.Size() + Prefixed(", for ", d.Branch.V)
}

// Size is how much would change, in words.
func (d RequestedData) Size() string {
	files := fmt.Sprintf("%d files", d.Files.V)
	if d.Files.V == 1 {
		files = "1 file"
	}
	return fmt.Sprintf("%s, +%d −%d", files, d.Added.V, d.Removed.V)
}

// NotifiedData is the data of Notified: people were shown it for the first time.
type NotifiedData struct {
	About
	Channel origin.Channel `json:"channel"`
}

func (d NotifiedData) sentence(Event, Words) string { return "shown" + Prefixed(" in ", d.Channel) }

// Verdict is what somebody, or a rule, said to a request. An answer that passes without a
// request has the verdict alone.
type Verdict struct {
	About
	DecisionID string         `json:"decision_id,omitempty"`
	Verdict    string         `json:"verdict"`
	Channel    origin.Channel `json:"channel,omitempty"`
	State      string         `json:"state,omitempty"` // of the request, afterwards
	Have       Maybe[int]     `json:"have,omitzero"`
	Need       Maybe[int]     `json:"need,omitzero"`
	Seen       any            `json:"seen,omitempty"` // an approval.Seen
	Comment    string         `json:"comment,omitempty"`
	Files      []string       `json:"files,omitempty"`
	Comments   any            `json:"comments,omitempty"` // agent.LineComments
	For        string         `json:"for,omitempty"`      // in whose place
}

type DecidedData struct {
	Verdict
	Rule     string   `json:"rule,omitempty"`
	Text     string   `json:"text,omitempty"`
	Made     string   `json:"made,omitempty"` // how the verdict makes the next revision
	Declined []string `json:"declined,omitempty"`
}

func (d DecidedData) sentence(_ Event, w Words) string {
	return first(d.Text, w.Verdict(d.Verdict.Verdict, false)+Prefixed(": ", d.Comment), "decided")
}

type ChangesRequestedData struct {
	Verdict
	StartOver bool `json:"start_over,omitempty"`
}

func (d ChangesRequestedData) sentence(_ Event, w Words) string {
	return first(w.Verdict(d.Verdict.Verdict, d.StartOver)+Prefixed(": ", d.Comment), "asked for changes")
}

type SupersededData struct {
	About
	By   int    `json:"by"` // the number of the revision
	Made string `json:"made,omitempty"`
}

func (SupersededData) sentence(Event, Words) string { return "a newer revision takes its place" }

type ExpiredData struct {
	About
	Have int `json:"have"`
	Need int `json:"need"`
}

func (ExpiredData) sentence(Event, Words) string { return "nobody decided in time" }

type StaleData struct {
	Message  string `json:"message"`
	OldBase  string `json:"old_base"`
	NewBase  string `json:"new_base"`
	Branch   string `json:"branch"`
	Revision int    `json:"revision"`
	Digest   string `json:"digest"`
}

func (d StaleData) sentence(Event, Words) string {
	return first(d.Message, "the branch moved under the change")
}

type RemindedData struct {
	About
	Reminder  int      `json:"reminder"` // counts from 1
	Have      int      `json:"have"`
	Need      int      `json:"need"`
	Missing   []string `json:"missing"`
	ExpiresAt string   `json:"expires_at"`
}

func (d RemindedData) sentence(Event, Words) string {
	return "people are reminded" + Prefixed("; it waits for ", strings.Join(d.Missing, ", "))
}

type EscalatedData struct {
	About
	Step int      `json:"step"`
	To   []string `json:"to"`   // groups that are told now
	From []string `json:"from"` // groups that may decide now
	Have int      `json:"have"`
	Need int      `json:"need"`
}

func (d EscalatedData) sentence(Event, Words) string {
	return "nobody has decided, so these are told, too: " + strings.Join(d.To, ", ")
}

// Answer is what somebody did with a comment on a line.
type Answer struct {
	About
	Thread  string         `json:"thread"`
	Path    string         `json:"path"`
	Line    int            `json:"line"` // 0 is the whole file
	Channel origin.Channel `json:"channel"`
	Text    string         `json:"text,omitempty"`
}

// Place is what the comment is about.
func (a Answer) Place() string {
	if a.Line == 0 {
		return first(a.Path, "a file")
	}
	return fmt.Sprintf("%s:%d", a.Path, a.Line)
}

type CommentRepliedData struct{ Answer }

func (d CommentRepliedData) sentence(Event, Words) string {
	return "replies to the comment on " + d.Place() + Prefixed(": ", d.Text)
}

type CommentResolvedData struct{ Answer }

func (d CommentResolvedData) sentence(Event, Words) string {
	return "resolves the comment on " + d.Place()
}

type CommentReopenedData struct{ Answer }

func (d CommentReopenedData) sentence(Event, Words) string {
	return "opens the comment on " + d.Place() + " again"
}

// VerdictRefusedData is the data of VerdictRefused. It is about no request where there is
// none of that id.
type VerdictRefusedData struct {
	About
	Channel origin.Channel `json:"channel"`
	Verdict string         `json:"verdict,omitempty"`
	Code    string         `json:"code"`
	Message string         `json:"message"`
}

func (d VerdictRefusedData) sentence(Event, Words) string {
	return "gave a verdict that was not counted" + Prefixed(": ", d.Message)
}

// KindAction is the kind of what is about a call of a tool.
const KindAction = "action"

// DeniedData is the data of Denied. It is about no request.
type DeniedData struct {
	About
	Rule   string `json:"rule"`
	Tool   string `json:"tool"`
	Server string `json:"server,omitempty"`
	Brief  string `json:"brief"` // the call in one line
}

func (d DeniedData) sentence(Event, Words) string {
	return fmt.Sprintf("wants to make a call that the rule %q denies: %s. Nothing ran", d.Rule, d.Brief)
}

// GrantedData is the data of Granted; Scope says in words what is covered.
type GrantedData struct {
	About
	GrantID string `json:"grant_id"`
	Scope   string `json:"scope"`
}

func (d GrantedData) sentence(Event, Words) string {
	return "allows for the rest of the task: " + d.Scope
}

type GrantUsedData struct {
	GrantID string `json:"grant_id"`
	Tool    string `json:"tool"`
	Brief   string `json:"brief"` // the call in one line
	By      string `json:"by"`    // whose grant it is
	Uses    int    `json:"uses"`
}

func (d GrantUsedData) sentence(Event, Words) string {
	return "makes a call that " + d.By + " allowed for the rest of the task: " + d.Brief
}

type GrantRevokedData struct {
	About
	GrantID string `json:"grant_id"`
	Scope   string `json:"scope"`
	Agent   string `json:"agent"`
}

func (d GrantRevokedData) sentence(Event, Words) string {
	return "allows no more: " + d.Scope + " by " + d.Agent
}

type OvertakenData struct {
	About
	Fits    bool     `json:"fits"` // again
	Branch  string   `json:"branch"`
	NewBase string   `json:"new_base"`
	Files   []string `json:"files"`
	Message string   `json:"message"`
}

func (d OvertakenData) sentence(Event, Words) string {
	return first(d.Message, "the branch changed meanwhile")
}

type WithdrawnRightData struct {
	About
	Lost    any    `json:"lost"` // approval.LostRights
	Have    int    `json:"have"`
	Need    int    `json:"need"`
	Message string `json:"message"`
}

func (d WithdrawnRightData) sentence(Event, Words) string {
	return first(d.Message, "the approvals do not suffice any more")
}
