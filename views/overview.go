package views

import "time"

// OverviewPage is `/`: what needs this person, what runs, what went wrong today.
type OverviewPage struct {
	Chrome
	NeedsYou      []ApprovalRow // by deadline, then age; at most 8
	NeedsYouAll   int           // how many there are in all
	OldestNeed    time.Time
	Running       []DelegationRow // at most 8
	RunningAll    int
	Wrong         []DelegationRow // failed, rejected, refused, expired today; at most 8
	WrongAll      int
	Today         TodayFigures
	Send          SendForm
	Examples      []Example // the demo's two ready tasks
	AnyTasks      bool      // false: first use
	OtherApprover string    // who could decide, when this person cannot; may be empty
}

// TodayFigures are the counts of the last line of the overview.
type TodayFigures struct {
	Tasks     int
	Landed    int
	Rejected  int
	USD       *float64      // nil: nobody reported a cost
	MedianYes time.Duration // from request to decision; 0: none today
}

// Example is a task of the demo that is ready to send.
type Example struct {
	Title      string // what it shows
	Note       string // what will happen
	Agent      string
	Text       string
	Repository string
	Key        string
}

// SendForm is the form that makes a task.
type SendForm struct {
	Agents       []Choice
	Repositories []Choice // empty: the form has no such field
	Agent        string   // what is filled in
	Text         string
	Repository   string
	Key          string // makes a double click one task
	Error        string // why the last try was refused
}

// Choice is one option of a select.
type Choice struct {
	Value string
	Text  string
	Note  string
}
