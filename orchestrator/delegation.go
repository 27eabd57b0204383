package orchestrator

import (
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/patch"
)

// Delegation is one hop: From hands Text to To. The root has no From and depth 0.
//
// Columns that lists filter on are fields of Delegation itself; what only the
// engine needs to go on is in Work, which the store keeps as one JSON column.
type Delegation struct {
	ID         string
	TaskID     string
	ParentID   string // "" at the root
	From       string // the caller's name, "" at the root
	To         string // the agent that works
	Text       string
	State      State
	Depth      int
	Chain      chain.Chain // steps that led here; immutable
	HopKey     string      // unique below (ParentID, Generation): makes hops idempotent
	Generation int         // of the parent, when this was made (Retry raises it)
	Repository string
	Requester  string // copied from the task, for lists
	Spawned    bool   // its caller does not wait for it (P44)
	// ContextHash is the canonical hash of what was handed on, for the repeat guard (H15,
	// H17); "" at the root.
	ContextHash string

	Result *agent.Result
	Error  *agent.Failure
	Usage  agent.Usage // of this delegation and everything below it

	ApprovalID string // its newest request

	Attempt      int       // fencing token: rises with every claim
	Losses       int       // claims that were lost since it last came on
	Holder       string    // the node that holds the lease, "" when none
	LeaseUntil   time.Time // zero when none
	ReadyAt      time.Time // not claimed before
	OpenChildren int       // live children that it waits for
	OpenSpawned  int       // live children that it spawned
	Taken        bool      // a turn of its caller has carried its outcome
	TokenHash    string    // of the run token, "" when none is valid

	CreatedAt time.Time
	StartedAt *time.Time // first claim
	EndedAt   *time.Time
	Since     time.Time // when State was entered

	Work Work
}

// Order is what a yes orders to be landed, and how far that came.
type Order struct {
	RequestID string        `json:"request"`
	Revision  int           `json:"revision"`
	Digest    string        `json:"digest"`
	Base      patch.Base    `json:"base"`
	Tree      string        `json:"tree"`
	Commit    string        `json:"commit"`
	Bundle    string        `json:"bundle"` // blob
	Deliver   string        `json:"deliver"`
	Approvers []string      `json:"approvers"`
	Intent    *patch.Intent `json:"intent,omitempty"` // committed before the ref is pushed
}

// Proposal is a checked tree that is put before people. The engine makes it, the
// gate stores it as a revision of a request.
type Proposal struct {
	Repository string
	Deliver    string
	Base       patch.Base // Base.Branch is the target
	Tree       string
	Branch     string // the agent's branch
	Commit     string
	Bundle     string // blob
	Digest     string
	Agent      string
	Text       string // what the agent said
	Review     *patch.Review
	Checks     []Check
	Notes      []patch.Note
	Sandbox    string
	Lineage    Lineage // everybody with a part in the tree; its own agent is the first
}

// Check is the result of one of the repository's checks on a tree.
type Check struct {
	Command string        `json:"command"`
	OK      bool          `json:"ok"`
	Output  string        `json:"output"`
	Took    time.Duration `json:"took"`
}
