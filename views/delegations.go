package views

import "time"

// DelegationRow is one task or delegation in a list.
type DelegationRow struct {
	ID         string
	Title      string // the task's text; foreign, the row cuts it
	State      string
	Whose      string // who must act next: "you or bob", "coder"; empty when ended
	Chain      []string
	Requester  string
	Repository string
	Since      time.Time // start of this state
	CreatedAt  time.Time
	EndedAt    time.Time // zero while it lives
	Usage      Usage
	Reason     string // why it failed or was refused: "checks failed: go test ./…"
	Code       string // code of that reason
	Commit     string // landed commit
	ApprovalID string // request that waits or was decided
	Below      int    // delegations under it

	Key         string    // names the row where one task has several; empty: ID does
	Deep        string    // state of the work below, where that is what goes on
	QueuedSince time.Time // since when the work below waits for a worker; zero: it does not
}

// DelegationsPage is `/delegations`.
type DelegationsPage struct {
	Chrome
	Rows     []DelegationRow
	Filter   DelegationFilter
	Agents   []string // for the pickers
	Repos    []string
	Total    int    // how many there are without the filter
	NextHref string // older rows; empty at the end
	Later    bool   // this is not the first page
	Send     SendForm
}

// DelegationFilter is the filter as it stands in the URL.
type DelegationFilter struct {
	Query      string
	State      string
	Agent      string
	Repository string
	Requester  string
}

// Any says whether something is filtered.
func (f DelegationFilter) Any() bool {
	return f != DelegationFilter{}
}

// words repeats the filter the way it can be typed.
func (f DelegationFilter) words() string {
	s := ""
	for _, part := range [][2]string{{"state", f.State}, {"agent", f.Agent}, {"repository", f.Repository}, {"requester", f.Requester}} {
		if part[1] != "" {
			s += part[0] + ":" + part[1] + " "
		}
	}
	return s + f.Query
}

// Words of the state filter that hold several states.
const (
	FilterLive  = "live"  // not ended
	FilterWrong = "wrong" // failed, rejected or expired
)

// filterStates are the states that the list's picker offers.
var filterStates = []string{FilterLive, FilterWrong, "queued", "running", "waiting", "checking", "awaiting_approval", "landing", "completed", "failed", "rejected", "expired", "cancelled"}
