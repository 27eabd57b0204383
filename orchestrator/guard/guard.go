package guard

import (
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/each"
)

// Codes of refusals, as the contract publishes them.
const (
	CodeUnknown     = "unknown_agent"
	CodeSelf        = "self"
	CodeNotAllowed  = "not_allowed"
	CodeCycle       = "cycle"
	CodeMaxDepth    = "max_depth"
	CodeMaxHandoffs = "max_handoffs"
	CodeRepeat      = "repeat"
	CodeBreaker     = "breaker_open"
	CodeBudget      = "budget_exceeded"
	CodeNoCapacity  = "no_capacity"
	// CodeHumanRefused: a person, or a rule about hand-overs, said no (H18).
	CodeHumanRefused = "human_refused"
)

// Reason tells the cases of one code apart, for whoever says something else of each; "" is
// the usual one. Nobody has to read a sentence for it.
type Reason string

// Reasons of CodeMaxHandoffs beside the limit itself: nothing is counted then.
const (
	// ReasonIndependent: the task works in independent mode (H29).
	ReasonIndependent Reason = "independent"
	// ReasonFallback: the caller's hand-over failed, so it works by itself.
	ReasonFallback Reason = "fallback"
)

// Human is the name of the last guard, which asks a person first (H18).
const Human = "human"

// Values of Hop.Cycle; anything but Bounded is strict.
const (
	Strict  = "strict"
	Bounded = "bounded"
)

// Values of Hop.Capacity; anything but Refuse queues.
const (
	Queue  = "queue"
	Refuse = "refuse"
)

// ByCapability begins the ToName of a hop that named a capability which no agent has
// (P13). No agent's name contains a colon.
const ByCapability = "capability:"

// Hop is one hand-over that somebody asks for, with all that the rules look at.
type Hop struct {
	From, To         agent.Spec // To is zero unless Known; From is zero for a person
	Planned          bool       // people have written down whom From hands to
	Elsewhere        bool       // To works in another system
	FromName, ToName string     // as asked; both end up in messages, so they may be hostile
	Known            bool       // ToName is in the registry
	Agents           []string   // all known names, for "did you mean"
	// Chain is the caller's: the steps that led to it, so its last target is the
	// caller. It is empty when the caller is the root, which is no step (K5).
	Chain       chain.Chain
	Text        string
	Handoffs    int // hand-overs that the task has made (H10)
	MaxHandoffs int // 0 allows none (H19)
	// Independent tasks hand nothing on but along a plan, whose steps are no agent's choice (H29).
	Independent bool
	// Fallback is the agent to whom the caller handed its work, which failed: the caller works
	// by itself now. "" elsewhere.
	Fallback  string
	Cycle     string
	Capacity  string
	FreeSlots int
	Recent    []Entry // the task's last hand-overs, oldest first

	Now       time.Time
	Hash      string  // of what is handed on (Hash); "" is not compared
	Breaker   Breaker // the target's
	Budget    Purse
	RemoteHop int // hand-overs between systems that led to this task
	MaxRemote int // 0: no limit
	AskFirst  bool
}

// Purse is what the hop could be given.
type Purse struct {
	Limits budget.Limits // of the caller
	Left   budget.Limits // of the caller, with what its live children would give back
	Hops   int           // hand-overs that the caller made
	Team   int           // different agents in the task
	Known  bool          // the target takes part in the task already
	// Task is what the task as a whole may have: Handoffs and Agents (H19–H23).
	Task budget.Limits
}

// Entry is one hand-over that was made.
type Entry struct {
	From string `json:"from"`
	To   string `json:"to"`
	Hash string `json:"hash,omitempty"`
}

// Verdict is what one guard said. Code is "" when it allowed the hop; Message then
// says briefly why.
type Verdict struct {
	Guard   string `json:"guard"`
	Code    string `json:"code,omitempty"`
	Reason  Reason `json:"-"` // of the code
	Message string `json:"message"`
	Allowed bool   `json:"allowed"`
	Skipped bool   `json:"skipped,omitempty"` // not asked: one before it refused
}

// Error makes a refusal an error for whoever asks several guards in a row.
func (v *Verdict) Error() string { return v.Message }

// rule is one guard. It returns a code with the sentence of its refusal, or "" with
// a short note for the page that shows all verdicts.
type rule struct {
	name  string
	check func(Hop) (code, message string)
}

// pipeline is the order of the guards. The design gives the order; K8 and O8 ask
// for cycle before depth, so that A→B→A stops at the first attempt.
func pipeline() []rule {
	return []rule{
		{"unknown", checkUnknown},
		{"self", checkSelf},
		{"role", checkRole},
		{"allow_list", checkAllowList},
		{"cycle", checkCycle},
		{"depth", checkDepth},
		{"remote_hops", checkRemote},
		{"handoffs", checkHandoffs},
		{"repeat", checkRepeat},
		{"breaker", checkBreaker},
		{"budget", checkBudget},
		{"capacity", checkCapacity},
		{Human, checkHuman},
	}
}

// Names returns the guards in the order in which they are asked.
func Names() []string {
	return each.Of(pipeline(), func(r rule) string { return r.name })
}

// Check asks the guards in order and stops at the first refusal, which it also
// returns on its own; refused is nil when the hop may be made. The work of a person
// (From and FromName empty) is no hand-over: depth and the limit of hand-overs let it pass.
func Check(h Hop) (verdicts []Verdict, refused *Verdict) {
	for _, r := range pipeline() {
		code, message := r.check(h)
		v := Verdict{Guard: r.name, Code: code, Message: message, Allowed: code == ""}
		verdicts = append(verdicts, v)
		if !v.Allowed {
			v.Reason = h.reason(code)
			return verdicts, &v
		}
	}
	return verdicts, nil
}

// Explain is Check for people who want to see all guards: those behind a refusal are
// listed, too, and say that they were not asked.
func Explain(h Hop) (verdicts []Verdict, refused *Verdict) {
	verdicts, refused = Check(h)
	for _, name := range Names()[len(verdicts):] {
		verdicts = append(verdicts, Verdict{Guard: name, Message: "not asked", Skipped: true})
	}
	return verdicts, refused
}

// from is the caller's name, "" for a person.
func (h Hop) from() string {
	if h.From.Name != "" {
		return h.From.Name
	}
	return h.FromName
}

// to is the target's own name where it is known, else as asked.
func (h Hop) to() string {
	if h.Known && h.To.Name != "" {
		return h.To.Name
	}
	return h.ToName
}

// byPerson reports whether this is a task's first delegation.
func (h Hop) byPerson() bool { return h.from() == "" }
