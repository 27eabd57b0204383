package guard

import (
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
)

// Codes of refusals, as the contract publishes them.
const (
	CodeUnknown     = "unknown_agent"
	CodeSelf        = "self"
	CodeNotAllowed  = "not_allowed"
	CodeCycle       = "cycle"
	CodeMaxDepth    = "max_depth"
	CodeMaxHandoffs = "max_handoffs"
	CodeNoCapacity  = "no_capacity"
	// CodeHumanRefused: a person, or a rule about hand-overs, said no (H18).
	CodeHumanRefused = "human_refused"
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
	FromName, ToName string     // as asked; both end up in messages, so they may be hostile
	Known            bool       // ToName is in the registry
	Agents           []string   // all known names, for "did you mean"
	// Chain is the caller's: the steps that led to it, so its last target is the
	// caller. It is empty when the caller is the root, which is no step (K5).
	Chain       chain.Chain
	Text        string
	Handoffs    int // hand-overs that the task has made (H10)
	MaxHandoffs int // 0 allows none (H19)
	Cycle       string
	Capacity    string
	FreeSlots   int
	Recent      []Entry // the task's last hand-overs, oldest first, for Bounded
}

// Entry is one hand-over that was made.
type Entry struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Verdict is what one guard said. Code is "" when it allowed the hop; Message then
// says briefly why.
type Verdict struct {
	Guard   string `json:"guard"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Allowed bool   `json:"allowed"`
}

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
		{"handoffs", checkHandoffs},
		{"capacity", checkCapacity},
	}
}

// Names returns the guards in the order in which they are asked.
func Names() []string {
	var names []string
	for _, r := range pipeline() {
		names = append(names, r.name)
	}
	return names
}

// Check asks the guards in order and stops at the first refusal, which it also
// returns on its own; refused is nil when the hop may be made. The work of a person
// (From and FromName empty) is no hand-over: depth and hand-off limit let it pass.
func Check(h Hop) (verdicts []Verdict, refused *Verdict) {
	for _, r := range pipeline() {
		code, message := r.check(h)
		v := Verdict{Guard: r.name, Code: code, Message: message, Allowed: code == ""}
		verdicts = append(verdicts, v)
		if !v.Allowed {
			return verdicts, &v
		}
	}
	return verdicts, nil
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
