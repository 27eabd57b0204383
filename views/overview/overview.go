package overview

import (
	"cmp"
	"time"

	"gatehouse/orchestrator/record/insight"
	"gatehouse/views"
)

// OverviewPage is `/`: what needs this person, what runs, what went wrong today.
type OverviewPage struct {
	views.Chrome
	NeedsYou      []views.ApprovalRow // by deadline, then age; at most 8
	NeedsYouAll   int                 // how many there are in all
	OldestNeed    time.Time
	Running       []views.DelegationRow // at most 8
	RunningAll    int
	RunningMore   bool                  // there are more than were counted
	Parked        int                   // those of them that wait for people
	Wrong         []views.DelegationRow // failed, refused, expired today; at most 8
	WrongAll      int                   // tasks
	RefusedAll    int                   // hand-overs
	House         House
	Today         TodayFigures
	Send          views.SendForm
	Examples      []views.Example // the demo's two ready tasks
	AnyTasks      bool            // false: first use
	OtherApprover string          // who could decide, when this person cannot; may be empty
}

// TodayFigures are the counts of the last line of the overview.
type TodayFigures struct {
	Since     time.Time // midnight in the server's zone
	Tasks     int
	More      bool // there were more than were counted
	Landed    int
	Delivered string // the word for Landed: what a yes does in the repositories of today's configuration
	Rejected  int
	USD       *float64      // nil: nobody reported a cost
	MaxUSD    *float64      // what a day should cost; nil: nobody said
	MedianYes time.Duration // from request to a person's yes; 0: none today
}

// delivered is the word for what people said yes to.
func (t TodayFigures) delivered() string { return cmp.Or(t.Delivered, "landed") }

// over says whether the day costs more than it should.
func (t TodayFigures) over() bool { return t.USD != nil && t.MaxUSD != nil && *t.USD > *t.MaxUSD }

// House is how the system itself does.
type House struct {
	Breakers []insight.Breaker  // those that are not closed
	Channels []views.ChannelRow // those that tell how they do
	Nodes    int                // that live; 0: not known
	Sealed   time.Time          // zero: no seal yet
}
