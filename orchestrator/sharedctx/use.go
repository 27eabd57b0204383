package sharedctx

import "time"

// Kind is what somebody did with an entry.
type Kind string

// The kinds of a Use.
const (
	Read   Kind = "read"
	Write  Kind = "write"
	Touch  Kind = "touch"
	Delete Kind = "delete"
)

// Use is one use of an entry: who read, wrote, touched or deleted it, and for which
// work. Reads are those of agents, and a delegation's reads of one entry are one use;
// what people look at is not kept.
type Use struct {
	N            int64     `json:"n"` // the order of uses; the cursor of History
	Namespace    string    `json:"namespace"`
	Key          string    `json:"key"`
	Kind         Kind      `json:"kind"`
	Agent        string    `json:"agent"`         // the agent or person
	DelegationID string    `json:"delegation_id"` // "" for people
	TaskID       string    `json:"task_id"`
	At           time.Time `json:"at"`
}

// KeepUses is how long the uses of an entry that is gone are kept.
const KeepUses = 90 * day

// Topic is one namespace with what is in it now.
type Topic struct {
	Namespace string    `json:"namespace"`
	Entries   int       `json:"entries"`
	UpdatedAt time.Time `json:"updated_at"` // of its newest entry
}
