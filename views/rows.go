package views

import (
	"time"

	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/patch"
)

// ApprovalRow is one request in a list or on a card.
type ApprovalRow struct {
	ID         string
	Title      string // foreign
	State      string
	Whose      string // "you or bob"; empty when ended
	Overtaken  string // that a yes lands nothing, and what to do; empty where it may land
	CanDecide  bool   // this person may decide it
	Chain      []string
	Agent      string
	AskedBy    string // of a hand-over: the agent that asks; empty for others
	About      string // what is asked, where that is no change of files: "coder wants to call Bash"; foreign
	Question   bool   // it is one, which is answered
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
	Read       string // who has read it, where and how much; empty while nobody has
	Commit     string
	Delivery   patch.Delivery
}

// Awaits is the state to show of a request that waits for people.
func (r ApprovalRow) Awaits() string { return Awaits(r.Question) }

// Awaits is the state to show of what waits for people: a question, or anything else.
func Awaits(question bool) string {
	if question {
		return "awaiting_answer"
	}
	return "awaiting_approval"
}

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
	Below      int    // delegations under it

	Key         string    // names the row where one task has several; empty: ID does
	QueuedSince time.Time // since when the work below waits for a worker; zero: it does not

	Case guard.Reason // which case of Code it is
}

// Failure says why a task ended badly: what, where, what can be done.
type Failure struct {
	What  string
	Where string // the agent
	Code  string
	Next  string
	ID    string // the delegation that failed first
}

// ContextLine is one value that goes with a hand-over; both are foreign.
type ContextLine struct {
	Key   string
	Value string
}
