package orchestrator

import (
	"encoding/json"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
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

// Work is the engine's own state of a delegation.
type Work struct {
	Runs     int             `json:"runs,omitempty"`     // own generation: raised by Retry and by a new revision
	Memo     json.RawMessage `json:"memo,omitempty"`     // of the kind of agent
	Refused  []agent.Child   `json:"refused,omitempty"`  // hops of a parked agent that guards refused
	Feedback *agent.Feedback `json:"feedback,omitempty"` // of "request changes"
	// Earlier is what people asked for in all rounds of the request so far, oldest first: a
	// run that begins with none of it is told it again. EarlierLeft older ones are not kept.
	Earlier     []agent.Earlier `json:"earlier,omitempty"`
	EarlierLeft int             `json:"earlierLeft,omitempty"`
	Stand
	// Shares is set when the caller works on the same repository: BaseTree is its
	// snapshot, and the result goes back into its checkout instead of to the gate.
	Shares      bool   `json:"shares,omitempty"`
	BaseBundle  string `json:"baseBundle,omitempty"` // blob with the objects of BaseTree, "" when the commit has them
	BaseSaved   string `json:"baseSaved,omitempty"`  // commit that carries BaseTree in that bundle
	Tree        string `json:"tree,omitempty"`       // the result's tree
	TreeCommit  string `json:"treeCommit,omitempty"`
	TreeBundle  string `json:"treeBundle,omitempty"` // blob
	AgentBranch string `json:"agentBranch,omitempty"`
	Sandbox     string `json:"sandbox,omitempty"`
	// Discarded says that what it changed, and took over from those below it, was thrown away,
	// because it only analyses.
	Discarded string `json:"discarded,omitempty"`
	// Confined is what the last attempt was allowed and used; nil before one ran.
	Confined    *agent.Confinement `json:"confined,omitempty"`
	ProcessWait bool               `json:"processWait,omitempty"` // Waiting, and its process still lives on Holder
	Land        *Order             `json:"land,omitempty"`        // set by the yes
	Reverts     string             `json:"reverts,omitempty"`     // request that this undoes; no agent runs
	Problem     string             `json:"problem,omitempty"`     // why landing waits for a person, e.g. a dirty folder
	// Revision is the one that the run is to make, 0 for the first. From is the tree of the
	// one before it, where the run goes on from there; Carried are the turns that came along.
	Revision int   `json:"revision,omitempty"`
	From     *Kept `json:"from,omitempty"`
	Carried  int   `json:"carried,omitempty"`
	Made     *Made `json:"made,omitempty"` // how people made Tree; nil when the agent did
	// Declined are the files that people left out of what the agent made.
	Declined []string        `json:"declined,omitempty"`
	Budget   *budget.Account `json:"budget,omitempty"`
	// Independent: its task was sent without hand-overs where they want to be enabled (H29).
	Independent bool `json:"independent,omitempty"`
	// Fallback is the hand-over that failed, so that its program works again by itself (H29).
	Fallback *agent.Fallback `json:"fallback,omitempty"`
	// Breaker is what was in force when a worker last claimed this; nil when breakers are off.
	Breaker *BreakerSettings `json:"breaker,omitempty"`
	// Epoch is how often the callers above were made to run again, so that what a new run
	// hands on is no repetition of what the run before did.
	Epoch    int             `json:"epoch,omitempty"`
	Handover *agent.Handover `json:"handover,omitempty"` // that came with the hop
	HandedTo string          `json:"handedTo,omitempty"` // the child with whose answer this ends; its program is gone
	// Steering are paths that steer programs and that the caller had changed: they are as on
	// the branch here, or the caller's where Trusted is set.
	Steering   []string `json:"steering,omitempty"`
	Trusted    bool     `json:"trusted,omitempty"`    // the agent has trust_checkout
	Steered    string   `json:"steered,omitempty"`    // what the files were made fit for: see steered
	Asked      bool     `json:"asked,omitempty"`      // people were asked before it was handed on (H18)
	Pinned     *Pinned  `json:"pinned,omitempty"`     // what people said yes to, in place of the shared context; nil: nobody was asked
	ForSpawned bool     `json:"forSpawned,omitempty"` // Waiting ends with a spawned child, too
	Record     bool     `json:"record,omitempty"`     // its end is written to the shared context (O23)
	// Lineage is who has a part in the tree beside this run; see Delegation.Lineage.
	Lineage Lineage `json:"lineage,omitzero"`
	// Kept is the checkout as it was when the last turn was stored: a run that begins anew,
	// or goes on after waiting, starts from there.
	Kept *Kept `json:"kept,omitempty"`
	// Anew: it was made to run again, and nobody has taken it up since.
	Anew bool `json:"anew,omitempty"`
	// RanFor counts running time of attempts that ended, so that timeouts count no waiting.
	RanFor time.Duration `json:"ranFor,omitempty"`
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
