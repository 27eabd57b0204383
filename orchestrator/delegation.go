package orchestrator

import (
	"encoding/json"
	"slices"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
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

// Work is the engine's own state of a delegation, in parts by what ends them. The parts are
// embedded: the column that they are stored in is one JSON object.
type Work struct {
	Runs int `json:"runs,omitempty"` // own generation: raised by Retry and by a new revision
	// Anew: it was made to run again, and nobody has taken it up since.
	Anew bool `json:"anew,omitempty"`
	Terms
	Base
	Session
	Product
	Provenance
	ToLand
	Rounds
	Messages
	Waits
	Account
}

// Terms are what a delegation was made with. No run changes them.
type Terms struct {
	Handover *agent.Handover `json:"handover,omitempty"` // that came with the hop
	Reverts  string          `json:"reverts,omitempty"`  // request that this undoes; no agent runs
	Record   bool            `json:"record,omitempty"`   // its end is written to the shared context (O23)
	// Independent: its task was sent without hand-overs where they want to be enabled (H29).
	Independent bool `json:"independent,omitempty"`
	// Epoch is how often the callers above were made to run again, so that what a new run
	// hands on is no repetition of what the run before did.
	Epoch  int     `json:"epoch,omitempty"`
	Asked  bool    `json:"asked,omitempty"`  // people were asked before it was handed on (H18)
	Pinned *Pinned `json:"pinned,omitempty"` // what people said yes to, in place of the shared context; nil: nobody was asked
}

// Base is what the checkout is made on.
type Base struct {
	Stand
	// Shares is set when the caller works on the same repository: BaseTree is its
	// snapshot, and the result goes back into its checkout instead of to the gate.
	Shares     bool   `json:"shares,omitempty"`
	BaseBundle string `json:"baseBundle,omitempty"` // blob with the objects of BaseTree, "" when the commit has them
	BaseSaved  string `json:"baseSaved,omitempty"`  // commit that carries BaseTree in that bundle
	// Steering are paths that steer programs and that the caller had changed: they are as on
	// the branch here, or the caller's where Trusted is set.
	Steering []string `json:"steering,omitempty"`
	Trusted  bool     `json:"trusted,omitempty"` // the agent has trust_checkout
	Steered  string   `json:"steered,omitempty"` // what the files were made fit for: see steered
}

// anew drops the base, so that the next run finds one on its branch as it is then. A
// caller's snapshot stays, and so does what people said yes to.
func (b *Base) anew() {
	if !b.Shares && !b.pinned() {
		b.BaseCommit, b.BaseTree, b.BaseBundle, b.BaseSaved = "", "", "", ""
	}
}

// pinned reports whether people are asked about the work on this commit, and no other.
func (b *Base) pinned() bool { return !b.Shares && b.BaseSaved != "" }

// unpin lets go of the commit that people were asked about; they are asked again.
func (b *Base) unpin() {
	if b.pinned() {
		b.BaseSaved = ""
	}
}

// Session is how far the run of this generation has come, over all its attempts.
type Session struct {
	Memo     json.RawMessage `json:"memo,omitempty"`     // of the kind of agent
	Refused  []agent.Child   `json:"refused,omitempty"`  // hops of a parked agent that guards refused
	Feedback *agent.Feedback `json:"feedback,omitempty"` // of "request changes"
	// From is the tree of the revision before this one, where the run goes on from there;
	// Carried are the turns that came along.
	From    *Checkpoint `json:"from,omitempty"`
	Carried int         `json:"carried,omitempty"`
	Follows *Followed   `json:"follows,omitempty"` // set where it goes on with a thread
	// Checkpoint is the checkout as it was when the last turn was stored: a run that begins anew,
	// or goes on after waiting, starts from there.
	Checkpoint *Checkpoint `json:"kept,omitempty"`
	// RanFor counts running time of attempts that ended, so that timeouts count no waiting.
	RanFor time.Duration `json:"ranFor,omitempty"`
	// Asks are what the run asked people, without those whose answers a turn has carried;
	// AskedInAll counts all that people were asked, AskedLately those of the minute from AskedFrom on.
	Asks        []Asked   `json:"asks,omitempty"`
	AskedInAll  int       `json:"askedInAll,omitempty"`
	AskedLately int       `json:"askedLately,omitempty"`
	AskedFrom   time.Time `json:"askedFrom,omitzero"`

	Acted    bool   `json:"acted,omitempty"`    // people allowed a call, so that what it does is not by rules alone
	HandedTo string `json:"handedTo,omitempty"` // the child with whose answer this ends; its program is gone
	// Resume is how its program finds its own session again (agent.Host.KeepSession).
	Resume string `json:"resume,omitempty"`
	// Fallback is the hand-over that failed, so that its program works again by itself (H29).
	Fallback *agent.Fallback `json:"fallback,omitempty"`
}

// Product is the tree that the run, or people after it, have made.
type Product struct {
	Tree       string `json:"tree,omitempty"`
	TreeCommit string `json:"treeCommit,omitempty"`
	TreeBundle string `json:"treeBundle,omitempty"` // blob
	Made       *Made  `json:"made,omitempty"`       // how people made Tree; nil when the agent did
	// Declined are the files that people left out of what the agent made.
	Declined []string `json:"declined,omitempty"`
	// Discarded says that what it changed, and took over from those below it, was thrown away,
	// because it only analyses.
	Discarded string `json:"discarded,omitempty"`
}

// Provenance is who works on the tree, where, and confined by what.
type Provenance struct {
	AgentBranch string `json:"agentBranch,omitempty"`
	Sandbox     string `json:"sandbox,omitempty"`
	// Confined is what the last attempt was allowed and used; nil before one ran.
	Confined *agent.Confinement `json:"confined,omitempty"`
	// NeverAsked: its program made calls of tools and asked about none of them first.
	NeverAsked bool `json:"neverAsked,omitempty"`
	// Lineage is who has a part in the tree beside this run; see Delegation.Lineage.
	Lineage Lineage `json:"lineage,omitzero"`
}

// ToLand is the yes that is being carried out.
type ToLand struct {
	Land    *Order `json:"land,omitempty"`    // set by the yes
	Problem string `json:"problem,omitempty"` // why landing waits for a person, e.g. a dirty folder
}

// Rounds are what people have asked for so far.
type Rounds struct {
	// Revision is the one that the run is to make, 0 for the first.
	Revision int `json:"revision,omitempty"`
	// Earlier is what people asked for in all rounds of the request so far, oldest first: a
	// run that begins with none of it is told it again. EarlierLeft older ones are not kept.
	Earlier     []agent.Earlier `json:"earlier,omitempty"`
	EarlierLeft int             `json:"earlierLeft,omitempty"`
}

// Messages are what people said to the agent (Engine.Tell). They outlive its runs: what was not
// read is told to the next one.
type Messages struct {
	Unread []Message `json:"unread,omitempty"` // oldest first
	Read   []Message `json:"read,omitempty"`   // the newest of what it was told
}

// Waits is what Waiting waits for.
type Waits struct {
	ProcessWait bool `json:"processWait,omitempty"` // its process still lives on Holder
	ForSpawned  bool `json:"forSpawned,omitempty"`  // it ends with a spawned child, too
}

// Account is what a delegation may use, and who rests after too many failures.
type Account struct {
	Budget *budget.Account `json:"budget,omitempty"`
	// Breaker is what was in force when a worker last claimed this; nil when breakers are off.
	Breaker *BreakerSettings `json:"breaker,omitempty"`
}

// Below is a live child of a delegation, as far as a wait for it is told.
type Below struct {
	ID      string    `json:"id"`
	Agent   string    `json:"agent"`
	State   State     `json:"state"`
	Since   time.Time `json:"since"` // when State was entered
	Spawned bool      `json:"spawned,omitempty"`
}

// Hand is what went along with a hand-over.
type Hand struct {
	Text      string   // its beginning, HandText characters at most
	Artifacts []string // names of what was handed over beside the text, in order
}

// HandText is how much of a hand-over's text a Hand has, in characters.
const HandText = 400

// EventFilter chooses events of one task; zero values choose everything.
type EventFilter struct {
	Types       []event.Type
	Delegations []string // of these only; the task's own events have none
	Has         string   // what the data must have in it, as it stands
	After       int64    // n > After
	Before      int64    // n < Before; 0: up to the newest
	Limit       int      // at least 1
	Newest      bool     // newest first, else oldest first
}

// State is where a delegation stands. doc.go has the diagram.
type State string

// The live states, each with who moves a delegation out of it.
const (
	// Queued waits for a slot. A worker's claim moves it to Running; a yes to its hand-over
	// that is withdrawn moves it back to AwaitingApproval.
	Queued State = "queued"
	// Running is worked on by the node that holds the lease. That node moves it on;
	// when its lease is lost, any node's claim does.
	Running State = "running"
	// Waiting has open children. The end of the last one moves it to Queued.
	Waiting State = "waiting"
	// Checking has a tree whose checks run. The node that holds the lease moves it
	// to AwaitingApproval, or to Failed.
	Checking State = "checking"
	// AwaitingApproval waits for people. approval.Gateway moves it: a yes to Landing
	// (or to Queued for a hand-over), a no to Rejected, the deadline to Expired, a tree
	// that a person made of it (some files only, or edited) back to Checking.
	AwaitingApproval State = "awaiting_approval"
	// Landing has its yes. The node that holds the lease lands it and moves it to
	// Completed, or back when the base moved.
	Landing State = "landing"
)

// The ended states. Only Retry moves a delegation out of one, and only a root.
const (
	Completed State = "completed"
	Failed    State = "failed"
	Rejected  State = "rejected"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// States lists all states, live ones first.
func States() []State {
	return []State{Queued, Running, Waiting, Checking, AwaitingApproval, Landing, Completed, Failed, Rejected, Expired, Cancelled}
}

// Ended reports whether nothing happens to the delegation any more.
func (s State) Ended() bool {
	return slices.Contains([]State{Completed, Failed, Rejected, Expired, Cancelled}, s)
}

// moves is the diagram of doc.go as data: which state may follow which. Cancelled
// and Failed may follow every live state and are added by MayMove.
var moves = map[State][]State{
	Queued:           {Running, Waiting, AwaitingApproval, Rejected, Expired},
	Running:          {Queued, Waiting, Checking, Completed, Rejected, Expired},
	Waiting:          {Queued, Running, Rejected, Expired},
	Checking:         {AwaitingApproval, Landing, Rejected},
	AwaitingApproval: {Queued, Checking, Landing, Rejected, Expired},
	Landing:          {Completed, Checking, Queued, AwaitingApproval},
}

// MayMove reports whether a delegation may go from one state to another. An ended
// one is only ever queued again, by Retry.
func MayMove(from, to State) bool {
	if from.Ended() {
		return to == Queued
	}
	return to == Failed || to == Cancelled || slices.Contains(moves[from], to)
}

// RequestEnd is how the request of a delegation ends with it. The gate's own states have
// the same words.
type RequestEnd string

const (
	RequestLanded    RequestEnd = "landed"
	RequestStale     RequestEnd = "stale" // what was approved no longer applies; it is asked again
	RequestRejected  RequestEnd = "rejected"
	RequestExpired   RequestEnd = "expired"
	RequestFailed    RequestEnd = "failed"
	RequestCancelled RequestEnd = "cancelled"
)

// requestEnd is how a request ends whose delegation ended in this state.
func requestEnd(s State) RequestEnd {
	switch s {
	case Rejected:
		return RequestRejected
	case Expired:
		return RequestExpired
	case Failed:
		return RequestFailed
	default:
		return RequestCancelled
	}
}
