package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
)

// window is how many hand-overs back the same one is not repeated (H15).
const window = 3

// checkUnknown refuses a target that is not configured (O6).
func checkUnknown(h Hop) (string, string) {
	switch {
	case strings.TrimSpace(h.ToName) == "" && h.To.Name == "":
		return CodeUnknown, "No agent was named. " + suggest(h.ToName, h.Agents)
	case !h.Known && strings.HasPrefix(h.ToName, ByCapability):
		return CodeUnknown, fmt.Sprintf("No agent has the capability %s. Name an agent, or give one of them this capability.",
			quoted(strings.TrimPrefix(h.ToName, ByCapability)))
	case !h.Known:
		return CodeUnknown, fmt.Sprintf("No agent is named %s. %s", quoted(h.ToName), suggest(h.ToName, h.Agents))
	}
	return "", safe(h.to()) + " is configured"
}

// checkSelf refuses handing work to oneself (O5, P18).
func checkSelf(h Hop) (string, string) {
	if !h.byPerson() && agent.Key(h.from()) == agent.Key(h.to()) {
		return CodeSelf, fmt.Sprintf("%s cannot hand work to itself. Do it here, or hand it to another agent.", safe(h.from()))
	}
	return "", "another agent"
}

// checkRole lets work go to the same or a lower rank only (A17).
func checkRole(h Hop) (string, string) {
	if agent.MayTake(h.From.Role, h.To.Role) {
		return "", "the roles allow it"
	}
	if h.To.Role == agent.CLI {
		return CodeNotAllowed, fmt.Sprintf("%s is a cli seat, which takes no work. Hand it to another agent.", safe(h.to()))
	}
	return CodeNotAllowed, fmt.Sprintf("%s (%s) cannot hand work to %s (%s): nobody hands work to a higher role. "+
		"Answer with what you have, or hand it to an agent of the same or a lower role.",
		safe(h.from()), h.From.Role, safe(h.to()), h.To.Role)
}

// checkAllowList holds the caller to its own delegates_to (P19).
func checkAllowList(h Hop) (string, string) {
	if h.From.MayHandTo(h.to()) {
		return "", "delegates_to allows it"
	}
	if len(h.From.DelegatesTo) == 0 {
		return CodeNotAllowed, fmt.Sprintf("%s may not hand work to anyone: its delegates_to is empty. Answer with what you have.", safe(h.from()))
	}
	return CodeNotAllowed, fmt.Sprintf("%s may not hand work to %s: its delegates_to names %s. Hand it to one of these, or answer with what you have.",
		safe(h.from()), safe(h.to()), list(h.From.DelegatesTo))
}

// checkCycle refuses a return to an agent that takes part already: always under
// strict (K4–K6, O7, P18); under bounded only the return that was just made (H15,
// H26, X2). Siblings are no return: a caller may use one agent several times (H27).
func checkCycle(h Hop) (string, string) {
	if !h.takesPart(h.to()) {
		return "", "not in the chain yet"
	}
	if h.Cycle != Bounded {
		return CodeCycle, fmt.Sprintf("Agent '%s' already in delegation chain: %s. Answer with what you have, or hand to another agent.",
			safe(h.to()), h.route())
	}
	if h.justMade() {
		return CodeCycle, fmt.Sprintf("Circular handoff: %s → %s was made within the last %d hand-overs; the chain is %s. "+
			"Answer with what you have, or hand to another agent.", safe(h.from()), safe(h.to()), window, h.route())
	}
	return "", "a return, which cycle: bounded allows"
}

// takesPart also counts the caller: at the root it is no step of the chain (K5).
func (h Hop) takesPart(name string) bool {
	return h.Chain.Contains(name) || (!h.byPerson() && agent.Key(name) == agent.Key(h.from()))
}

// justMade looks at the task's log, and at the chain itself, because parallel
// branches fill the log with other people's hand-overs.
func (h Hop) justMade() bool {
	var own []Entry
	for _, s := range h.Chain.Steps() {
		own = append(own, Entry{From: s.From, To: s.To})
	}
	from, to := agent.Key(h.from()), agent.Key(h.to())
	for _, log := range [][]Entry{h.Recent, own} {
		for _, e := range log[max(0, len(log)-window):] {
			if agent.Key(e.From) == from && agent.Key(e.To) == to {
				return true
			}
		}
	}
	return false
}

// checkDepth refuses the hop that would make the chain longer than its limit (K7,
// K10, O9); the advice is K16's.
func checkDepth(h Hop) (string, string) {
	limit := h.Chain.MaxDepth()
	if h.byPerson() || !h.Chain.Full() {
		return "", fmt.Sprintf("depth %d of %d", h.Chain.Depth(), limit)
	}
	return CodeMaxDepth, fmt.Sprintf("Maximum delegation depth reached: %s would be %d hops long, and the limit is %d. "+
		"Split the task instead of going deeper.", h.route(), h.Chain.Depth()+1, limit)
}

// checkHandoffs counts the hand-overs of the whole task, not of a process (H9, H10).
func checkHandoffs(h Hop) (string, string) {
	switch h.uncounted() {
	case ReasonIndependent:
		return CodeMaxHandoffs, fmt.Sprintf("Maximum handoffs reached: the task works in independent mode, where agents hand nothing on; %s was refused. "+
			"Do the work yourself, or have the task sent with --enable-handoffs.", h.route())
	case ReasonFallback:
		return CodeMaxHandoffs, fmt.Sprintf("Maximum handoffs reached: the hand-over to %s failed, so %s works by itself now; %s was refused. Do the work yourself.",
			safe(h.Fallback), safe(h.from()), h.route())
	}
	if h.byPerson() || h.Handoffs < h.MaxHandoffs {
		return "", fmt.Sprintf("%d of %d hand-overs made", h.Handoffs, h.MaxHandoffs)
	}
	return CodeMaxHandoffs, fmt.Sprintf("Maximum handoffs reached: the task has made %d of %d; %s was refused. "+
		"Answer with what you have, or raise `engine.max_handoffs`.", h.Handoffs, h.MaxHandoffs, h.route())
}

// uncounted is why the caller may hand nothing on, whatever was counted; "" where it may.
func (h Hop) uncounted() Reason {
	switch {
	case h.byPerson():
		return ""
	case h.Independent && !h.Planned:
		return ReasonIndependent
	case h.Fallback != "":
		return ReasonFallback
	}
	return ""
}

// reason is which case of this code refused h.
func (h Hop) reason(code string) Reason {
	if code == CodeMaxHandoffs {
		return h.uncounted()
	}
	return ""
}

// checkCapacity refuses only where the settings ask for it (O10, O11): a parked
// parent holds no slot, so a queue is never a deadlock here.
func checkCapacity(h Hop) (string, string) {
	switch {
	case h.FreeSlots > 0:
		return "", fmt.Sprintf("free slots: %d", h.FreeSlots)
	case h.Capacity != Refuse:
		return "", "no free slot: it waits in the queue"
	}
	return CodeNoCapacity, fmt.Sprintf("The pool has no free concurrency slot for a delegated run, so the nested run %s would block for ever. "+
		"Raise `engine.workers`, wait, or do not delegate while it is saturated.", h.route())
}

// Content is what a hop hands on.
type Content struct {
	Text     string            `json:"text"`
	Context  map[string]string `json:"context"`
	Handover *agent.Handover   `json:"handover"`
	Round    int               `json:"round"` // tells a repetition that a plan means from a loop (H26)
	Epoch    int               `json:"epoch"` // how often people had the callers run again
	Tree     string            `json:"tree"`  // the caller's files
	// Anew tells a spawn that is meant to be made again from a loop: the call that says so, or
	// the child that was forgotten since.
	Anew string `json:"anew,omitempty"`
}

// Hash is the canonical hash of what is handed on (H15, H17): SHA-256 over JSON whose
// object keys are sorted, so that the same content in another order is the same.
func Hash(c Content) (string, error) {
	if len(c.Context) == 0 {
		c.Context = nil // none and empty are the same
	}
	if c.Handover != nil {
		h := *c.Handover
		h.Update.Metrics = agent.HandoverMetrics{} // they grow with every try
		c.Handover = &h
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("hash what is handed on: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
