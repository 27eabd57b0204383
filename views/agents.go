package views

import "time"

// AgentsPage is `/agents`: the registry, and the dry run of the guards (?from=&to=).
type AgentsPage struct {
	Chrome
	Agents []AgentRow
	Check  CheckForm
}

// AgentRow is one agent in the registry.
type AgentRow struct {
	Name         string
	Kind         string
	Role         string
	Description  string
	Capabilities []string
	DelegatesTo  []string // empty: anyone its role allows
	Repository   string
	AnalysisOnly bool
	Running      int
	Waiting      int
	Queued       int
	Limit        int       // runs at once; 0: no limit of its own
	LastAt       time.Time // last task; zero: none
	LastState    string
	// Breaker says what its breaker does; Resting: hand-overs are refused.
	Breaker       string
	BreakerReason string
	Resting       bool
}

// CheckForm is "May A hand to B?" and its answer.
type CheckForm struct {
	Names    []string
	From, To string
	Task     string // "": of a new task
	Asked    bool
	Allowed  bool
	Code     string
	Message  string
	Verdicts []GuardVerdict
}

// AgentPage is `/agents/{name}`.
type AgentPage struct {
	Chrome
	Agent   AgentRow
	Facts   []Fact // command, timeout, output limit, sandbox …
	Recent  []DelegationRow
	Landed  int // of its requests, ever
	Refused int // rejected
	Check   CheckForm
	Send    SendForm
}

// Fact is one line of a definition list.
type Fact struct {
	Name  string
	Value string
	Code  bool // value is a command, path or id
}
