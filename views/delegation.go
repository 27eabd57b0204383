package views

import "time"

// DelegationPage is `/delegations/{id}`: one task's whole tree, with one row selected.
type DelegationPage struct {
	Chrome
	TaskID     string
	ID         string // the delegation that the address names: the root's, or one below
	Text       string // the task's text
	TaskState  string
	Whose      string    // who must act next: "coder works", "you or bob"
	Since      time.Time // start of that
	Requester  string
	Via        string // "web", "cli", "webhook ci-failed"
	CreatedAt  time.Time
	EndedAt    time.Time
	Repository string
	Usage      Usage
	HandOffs   int
	MaxHandOff int // 0: no limit is known
	Approval   *ApprovalRow
	Commit     string // landed commit
	Branch     string // where it landed
	Share      string // "2 of 4 files; left out: a.txt, b.txt" where people left files out; else empty
	Failure    *Failure
	Held       *Held
	CanCancel  bool
	CanRetry   bool
	CanPause   bool
	CanResume  bool
	Turns      int // of the conversation that may be forked; 0 for none

	Tab      Tab
	Tree     []TreeRow
	Open     bool // ?pinch=off: gaps are drawn in full
	Selected DelegationPane
	Talk     Conversation // of the selected delegation
	Events   []EventRow   // newest first, at most 100
	EventsN  int          // how many there are
	OlderURL string       // older events; empty at the end

	Flow     Flow        // on its tab
	Figures  TaskFigures // on its tab
	Waits    []WaitRow   // who waits for whom, while the task lives
	WaitNote string
}

// Tab is one view on the tree; it stands in the URL as ?tab=.
type Tab string

// The tabs that have a page.
const (
	TabTree     Tab = "tree"
	TabTimeline Tab = "timeline"
	TabTalk     Tab = "conversation"
	TabEvents   Tab = "events"
	TabResult   Tab = "result"
	TabFlow     Tab = "flow"
	TabFigures  Tab = "figures"
)

var tabs = []struct {
	Tab  Tab
	Text string
}{{TabTree, "Tree"}, {TabTimeline, "Timeline"}, {TabTalk, "Conversation"}, {TabEvents, "Events"}, {TabResult, "Result"}, {TabFlow, "Flow"}, {TabFigures, "Figures"}}

// ParseTab reads ?tab=; anything unknown is the tree.
func ParseTab(s string) Tab {
	for _, t := range tabs {
		if string(t.Tab) == s {
			return t.Tab
		}
	}
	return TabTree
}

// Failure says why a task ended badly: what, where, what can be done.
type Failure struct {
	What  string
	Where string // the agent
	Code  string
	Next  string
}

// Held says why a landing waits for a person although the yes stands.
type Held struct {
	What    string
	RetryID string // the delegation to try again; empty: this person may not
}

// SpanKind is what a stretch of time was spent on.
type SpanKind string

// The kinds of time, told apart by pattern as well as colour.
const (
	SpanQueued  SpanKind = "queued"
	SpanWorking SpanKind = "working"
	SpanChild   SpanKind = "child"   // waits for a delegation below
	SpanPerson  SpanKind = "person"  // waits for a person
	SpanLanding SpanKind = "landing" // checks and landing: work of the server
)

// Span is one stretch of a delegation's life. A zero To lasts until now.
type Span struct {
	Kind SpanKind
	From time.Time
	To   time.Time
}

// TreeRow is one delegation, or one refused hand-over, in the tree's order (depth first).
type TreeRow struct {
	ID      string // of the delegation; for a refusal the event's id
	Name    string // the agent
	From    string // who handed on
	Kind    string // command, workflow …
	Depth   int
	State   string // "refused" for a refusal
	Code    string // refusal's or failure's code
	Message string // its sentence
	Note    string // one line of what came of it: "+48 −12, 3 files"
	At      time.Time
	EndedAt time.Time
	Spans   []Span
}

// Refused says that this row is a hand-over that a guard refused.
func (r TreeRow) Refused() bool { return r.State == "refused" }

// DelegationPane is the selected delegation in full.
type DelegationPane struct {
	ID        string
	Name      string
	From      string
	Kind      string
	State     string
	Text      string
	Chain     []string
	Attempt   int
	Sandbox   string // how it ran: "bubblewrap", or why there was none
	Limits    string
	Exit      string // "exit 1", "killed after 10 min"
	StartedAt time.Time
	EndedAt   time.Time
	Usage     Usage
	Guards    []GuardVerdict
	LogTail   []string // last 40 lines of what it printed
	LogLines  int      // how many there are in all
	Result    string
	Rejected  []RejectedFile // what the server did not take
	Artifacts []Artifact
}

// GuardVerdict is the answer of one guard.
type GuardVerdict struct {
	Guard   string
	Allowed bool
	Skipped bool // not asked: one before it refused
	Code    string
	Message string
}

// RejectedFile is a path of the agent's work that was not taken, and why.
type RejectedFile struct {
	Path string
	Code string
	Text string
}

// Artifact is something an agent handed over beside its text.
type Artifact struct {
	Name string
	Kind string
	Size int64
}

// EventRow is one event of the task.
type EventRow struct {
	N     int64
	Type  string
	Actor string
	Who   string // the delegation's agent
	At    time.Time
	Text  string // one line of what happened
	JSON  string // the raw event
}
