package task

import (
	"net/url"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/views"
	"gatehouse/views/figures"
)

// DelegationPage is `/delegations/{id}`: one task's whole tree, with one row selected.
type DelegationPage struct {
	views.Chrome
	TaskID     string
	ID         string // the delegation that the address names: the root's, or one below
	Text       string // the task's text
	TaskState  string
	Whose      string    // who must act next: "coder works", "you or bob"
	Since      time.Time // start of that
	Requester  string
	Via        origin.Origin
	Source     *agent.Source
	Files      []views.Attached // that came with the task
	ViaHref    string           // the trigger with its deliveries; empty where nothing triggered it
	CreatedAt  time.Time
	EndedAt    time.Time
	Repository string
	On         string  // branch, or "tag v1 (read only)"; "" without a repository
	MaxHandOff int     // 0: no limit is known
	Meters     []Meter // what was used and is reserved, against the budget
	Approval   *views.ApprovalRow
	Asked      []views.ApprovalRow // calls and questions that wait for people, oldest first
	Grants     []Grant             // what people allowed for the rest of the task
	Commit     string              // landed commit
	Delivery   patch.Delivery      // where it is
	Share      string              // "2 of 4 files; left out: a.txt, b.txt" where people left files out; else empty
	Failure    *views.Failure
	Held       *Held
	Legal      []retention.Hold // legal holds that cover the task
	Dropped    string           // the day when retention removed its texts; empty while they are here
	CanCancel  bool
	CanRetry   bool
	CanPause   bool
	CanResume  bool
	CanTell    bool      // something may be said to the selected agent
	Tell       Tell      // what was refused of it
	Messages   []Message // what people said to it, oldest first
	Turns      int       // of the conversation that may be forked; 0 for none

	Tab      Tab
	Tree     []TreeRow  // what this page has of the tree
	Busy     []Span     // when those worked that have no row here
	Keep     url.Values // of the address: what stays when another row is selected
	TreeN    int        // delegations of the task
	TreeRows int        // rows that are open, on all pages
	TreeFrom int        // how many of these come before the first one here
	TreePrev string     // ?row= of the page before; empty on the first
	TreeNext string     // ?row= of the next page; empty on the last
	Find     string     // what the rows are searched for
	Found    int        // how many have it
	FindCut  bool       // more have it than are shown
	Open     bool       // ?pinch=off: all gaps of the timeline are drawn in full
	Plain    bool       // ?plain=on: answers as they were written, without formatting
	Selected DelegationPane
	Talk     Conversation // of the selected delegation

	Events      []EventRow // newest first, at most 100
	EventsN     int        // how many the task has
	EventAt     int64      // the one that was asked for; 0 for none
	EventType   string     // only these; empty for all
	EventTypes  []string   // to choose from
	EventOf     bool       // only those of the selected delegation
	NewerEvents bool       // there are newer ones than these
	OlderURL    string     // older events; empty at the end

	Context    []ContextPiece // on its tab
	ContextCut bool           // more uses are on record than these
	MayContext bool           // whoever looks may read the shared context

	BarsCut  bool                // only the first events of its rows made its bars
	Heavy    bool                // its drawings and figures are made of many events
	Flow     Flow                // on its tab
	Figures  figures.TaskFigures // on its tab
	Waits    []views.WaitRow     // who waits for whom, while the task lives
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
	TabContext  Tab = "context"
	TabFlow     Tab = "flow"
	TabFigures  Tab = "figures"
)

var tabs = []struct {
	Tab  Tab
	Text string
}{{TabTree, "Tree"}, {TabTimeline, "Timeline"}, {TabTalk, "Conversation"}, {TabEvents, "Events"}, {TabResult, "Result"}, {TabContext, "Context"}, {TabFlow, "Flow"}, {TabFigures, "Figures"}}

// ParseTab reads ?tab=; anything unknown is the tree.
func ParseTab(s string) Tab {
	for _, t := range tabs {
		if string(t.Tab) == s {
			return t.Tab
		}
	}
	return TabTree
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
	N       int64  // of a refusal: the event's number
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

	Folds   bool   // rows are below it, which can be shown and hidden
	Open    bool   // they are shown
	FoldKey string // its name in the address
	Below   Below
}

// Refused says that this row is a hand-over that a guard refused.
func (r TreeRow) Refused() bool { return r.State == "refused" }

// DelegationPane is the selected delegation in full.
type DelegationPane struct {
	ID         string
	Name       string
	From       string
	Kind       string
	State      string
	Text       views.LongText
	Chain      []string
	Attempt    int
	Sandbox    string // how it ran: "bubblewrap", or why there was none
	NeverAsked bool   // its program made calls of tools and asked about none
	Limits     string
	Used       string // the most that it used of what is limited
	Exit       string // "exit 1", "killed after 10 min"
	ExitCode   string
	StartedAt  time.Time
	EndedAt    time.Time
	Usage      views.Usage
	Guards     []guard.Verdict
	LogTail    []LogLine // last 40 lines of what it printed
	LogMore    bool      // there are more before these
	Result     views.LongText
	Data       views.LongText      // JSON
	Rejected   []RejectedFile      // what the server did not take
	Steering   []string            // files that steer programs and that the caller had changed
	Steered    string              // what became of them
	Handed     []views.ContextLine // the state that came with a hand-over
	Artifacts  []Artifact
	ApprovalID string // its newest request
	Commit     string // where its change landed
	Pushed     string // the branch that it was pushed to instead, else ""
	More       int    // ?more=: how many further pieces of long texts are here
}

// LogLine is one line of what an agent printed.
type LogLine struct {
	Text string
	Rest int   // bytes of it that are left out
	N    int64 // the event that has all of it
}

// RejectedFile is a path of the agent's work that was not taken, and why.
type RejectedFile struct {
	Path string
	Code string
	Text string
}

// Artifact is something an agent handed over beside its text.
type Artifact struct {
	N    int // from 1, in its address
	Name string
	Type string // media type, "" for those of before
	Path string // where it lies instead, if it has no text
	Size int64  // bytes
	Text string // of Markdown that is short; foreign
}

// EventRow is one event of the task.
type EventRow struct {
	N            int64
	ID           string
	DelegationID string
	RequestID    string // that it is about
	Type         string
	Actor        string
	Who          string // the delegation's agent
	At           time.Time
	Text         string // one line of what happened
	JSON         string // the raw event
	Rest         int    // bytes of it that are left out
}
