package views

import "time"

// ApprovalRow is one request in a list or on a card.
type ApprovalRow struct {
	ID         string
	Title      string // foreign
	State      string
	Whose      string // "you or bob"; empty when ended
	CanDecide  bool   // this person may decide it
	Chain      []string
	Agent      string
	AskedBy    string // of a hand-over: the agent that asks; empty for a patch
	Repository string
	Target     string // the branch where it lands
	Added      int
	Removed    int
	Files      int
	Warnings   []string // codes, one per kind
	ChecksBad  int      // failed checks
	Yes        int
	Need       int
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: never
	DecidedBy  string
	Commit     string
}

// ApprovalsPage is `/approvals`.
type ApprovalsPage struct {
	Chrome
	State    string // filter; empty is all
	Rows     []ApprovalRow
	Total    int
	NextHref string
	Later    bool
	Running  int // live tasks, for "Nothing needs you. 4 tasks are running."
}

var approvalTabs = []struct{ State, Text string }{
	{"pending", "Pending"}, {"landed", "Landed"}, {"rejected", "Rejected"},
	{"changes_requested", "Changes requested"}, {"stale", "Stale"}, {"expired", "Expired"}, {"", "All"},
}
