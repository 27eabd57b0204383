package views

import (
	"time"

	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/record/history"
)

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

	Case guard.Reason // which case of Code it is
}

// DelegationsPage is `/delegations`.
type DelegationsPage struct {
	Chrome
	Rows     []DelegationRow
	Filters  FilterBar
	Filtered bool          // the line says more than the one that the list begins with
	All      history.Count // tasks without a filter; counted where no row matches
	NextHref string        // older rows; empty at the end
	Later    bool          // this is not the first page
	Send     SendForm
}
