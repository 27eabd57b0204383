package orchestrator

import (
	"slices"
)

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
