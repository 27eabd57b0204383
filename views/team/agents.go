package team

import (
	"time"

	"gatehouse/orchestrator/guard"
	"gatehouse/views"
)

// AgentsPage is `/agents`: the registry, and the dry run of the guards (?from=&to=).
type AgentsPage struct {
	views.Chrome
	Agents []AgentRow
	Check  CheckForm
	Add    *AddAgent // nil: the reader may not change the configuration
}

// AddAgent is how to add one of the known programs; nothing is written by the page.
type AddAgent struct {
	Presets []PresetRow
	Chosen  int // of Presets; what follows is about it

	Agent        string // the name that the new agent would have
	Program      string
	YAML         string // lines below `agents:`
	NoRepository bool   // none is set up, so the one in YAML is made up
	Key          string // the variable with its key
	KeySet       bool   // the server's environment has it
	SignIn       string // what to do in place of a key; "" nothing
	Notes        []string
	Played       bool // our tests play the real program
}

// PresetRow is one of the known programs.
type PresetRow struct {
	Name, Title string
	Path        string   // where the server finds it; "" nowhere
	Used        []string // agents that run it already
}

// addHref is the page with a preset chosen.
func addHref(name string) string { return views.WithQuery("/agents", "add", name) + "#add" }

// AgentRow is one agent in the registry.
type AgentRow struct {
	Name          string
	Kind          string
	Role          string
	Description   string
	Capabilities  []string
	DelegatesTo   []string // empty: anyone its role allows
	Repository    string
	AnalysisOnly  bool
	AskFirst      bool
	TrustCheckout bool
	Running       int
	Waiting       int
	Queued        int
	LastAt        time.Time // last task; zero: none
	LastError     string    // why that failed; "" it did not
	FailedToday   int       // delegations since midnight UTC
	InboxSize     int       // what its inbox holds; Queued of them wait
	InboxPercent  int
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
	Verdicts []guard.Verdict
}

// AgentPage is `/agents/{name}`.
type AgentPage struct {
	views.Chrome
	Agent   AgentRow
	Facts   []Fact // command, timeout, output limit, sandbox …
	Recent  []views.DelegationRow
	Judged  bool // the two below are known to the reader
	Landed  int  // of its requests, ever
	Refused int  // rejected
	Check   CheckForm
	Send    views.SendForm
}

// Fact is one line of a definition list.
type Fact struct {
	Name  string
	Value string
	Code  bool // value is a command, path or id
}

// inboxWords are how full the inbox of an agent is.
func inboxWords(a AgentRow) string {
	words := views.Thousands(a.Queued) + " of " + views.Thousands(a.InboxSize) + " (" + views.Thousands(a.InboxPercent) + " %)"
	if a.InboxPercent >= 100 {
		words += ", full"
	}
	return words
}
