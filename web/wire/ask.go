package wire

import (
	"encoding/json"
	"time"
)

// Action is a call of a tool that an agent wants to make.
type Action struct {
	Tool         string          `json:"tool"`
	Input        json.RawMessage `json:"input"`            // an object
	Server       string          `json:"server,omitempty"` // the MCP server whose tool it is
	Hints        *Hints          `json:"hints,omitempty"`
	DelegationID string          `json:"delegation_id,omitempty"` // whose call it is; the server says it
}

// Hints are what a tool's server says of it; null where it says nothing.
type Hints struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// Ask is the body of POST /asks, by which a run asks people. Exactly one of Action and Question
// is set.
type Ask struct {
	// Ref names the ask within its run: sent again under it, it is the same ask.
	Ref      string  `json:"ref"`
	Action   *Action `json:"action,omitempty"`
	Question *Asked  `json:"question,omitempty"`
}

// Asked is a question of an agent.
type Asked struct {
	Text    string   `json:"text"`
	Choices []string `json:"choices,omitempty"`
	To      string   `json:"to,omitempty"` // a group
}

// Answered is what came of an ask.
type Answered struct {
	State     string          `json:"state"` // open, allowed, refused, answered or expired
	RequestID string          `json:"request_id,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"` // of an allowed call: what it is made with
	Edited    bool            `json:"edited,omitempty"`
	Text      string          `json:"text,omitempty"` // the answer; or why it was refused
	By        string          `json:"by,omitempty"`
}

// Grants is the answer of GET /delegations/{id}/grants.
type Grants struct {
	Items []Grant `json:"items"`
}

// Grant is a yes to calls of one kind for the rest of a task.
type Grant struct {
	ID        string     `json:"id"`
	TaskID    string     `json:"task_id"`
	Agent     string     `json:"agent"`
	Scope     string     `json:"scope"` // what it covers, in words
	Tool      string     `json:"tool"`
	RequestID string     `json:"request_id"`
	By        []string   `json:"by"`
	Uses      int        `json:"uses"`
	CreatedAt time.Time  `json:"created_at"`
	UsedAt    *time.Time `json:"used_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	RevokedBy string     `json:"revoked_by"`
}
