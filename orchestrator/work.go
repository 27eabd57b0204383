package orchestrator

import (
	"encoding/json"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
)

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
// caller's snapshot stays.
func (b *Base) anew() {
	if !b.Shares {
		b.BaseCommit, b.BaseTree, b.BaseBundle, b.BaseSaved = "", "", "", ""
	}
}

// Session is how far the run of this generation has come, over all its attempts.
type Session struct {
	Memo     json.RawMessage `json:"memo,omitempty"`     // of the kind of agent
	Refused  []agent.Child   `json:"refused,omitempty"`  // hops of a parked agent that guards refused
	Feedback *agent.Feedback `json:"feedback,omitempty"` // of "request changes"
	// From is the tree of the revision before this one, where the run goes on from there;
	// Carried are the turns that came along.
	From    *Kept `json:"from,omitempty"`
	Carried int   `json:"carried,omitempty"`
	// Kept is the checkout as it was when the last turn was stored: a run that begins anew,
	// or goes on after waiting, starts from there.
	Kept *Kept `json:"kept,omitempty"`
	// RanFor counts running time of attempts that ended, so that timeouts count no waiting.
	RanFor   time.Duration `json:"ranFor,omitempty"`
	HandedTo string        `json:"handedTo,omitempty"` // the child with whose answer this ends; its program is gone
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
