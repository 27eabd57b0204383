package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/budget"
)

// Kind names the machinery that runs an agent.
type Kind string

// The kinds of agents.
const (
	Command  Kind = "command"
	LLM      Kind = "llm"
	Workflow Kind = "workflow"
	Remote   Kind = "remote"
)

// ACP is the protocol of a command that speaks the Agent Client Protocol.
const ACP = "acp"

// HopsHeader is the header with which a system says how many hand-overs between systems
// led to a request, this one included, so that systems that call each other come to an end.
const HopsHeader = "Gatehouse-Hops"

// Role is the rank of an agent (A14–A17). Work may be handed to the same or a
// lower rank; a cli seat takes no work. An empty role limits nothing.
type Role string

// The roles, from the widest to the narrowest.
const (
	Admin      Role = "admin"
	Developer  Role = "developer"
	Specialist Role = "specialist"
	CLI        Role = "cli"
)

// Spec is the declaration of one agent, as configured. It is a value that
// nobody changes after the registry was made.
type Spec struct {
	Name         string
	Kind         Kind
	Role         Role
	Capabilities []string
	DelegatesTo  []string // names that it may hand work to; see Restricted
	Restricted   bool     // DelegatesTo was given: others are refused

	Repository   string   // the repository that it always works on, "" if the task's
	Writes       []string // globs that its patches may touch; empty: everything not protected
	AnalysisOnly bool     // its changes are discarded, its answers pass by themselves
	Approval     string   // auto, chat, telegram, web or any
	Owner        string   // name of the person who answers for it and so cannot approve its changes; "" nobody
	Timeout      time.Duration
	Reads        []string // namespaces of shared context that it is given; nil: all
	Prompt       string
	Output       json.RawMessage // a JSON Schema that the data of its answers must fit; nil: anything

	// Kind command.
	Command     []string
	Protocol    string // "" (plain), "jsonl" or ACP
	Sandbox     string // SandboxAuto, SandboxRequired or SandboxOff
	Network     string // NetworkOpen (also when empty) or NetworkOff
	Limits      Limits
	Writable    []string
	Env         map[string]string
	OutputLimit int64 // bytes of standard output that are kept; more ends the run

	// Kind workflow.
	Steps []Step

	// Kind llm. A command of protocol ACP is given the MCP servers, too.
	Model     string         // provider/name
	Fallbacks []string       // tried in order when Model fails for good
	Tools     ToolPolicy     // which tools it is given (P23)
	MCP       []MCPServer    // further tools
	MaxTurns  int            // model calls of one run; 0 is the runner's own limit
	MaxTokens int64          // of one answer; 0 is the runner's own choice
	Budget    *budget.Limits // the most that one delegation to it may use

	// Kind remote.
	URL   string // where the agent is; the token goes to this scheme, host and port alone
	Card  string // path of its agent card; "" is where the standard has it, below URL
	Token string // sent as a bearer token; "" sends none

	// AskFirst has a person asked before work is handed to it (H18).
	AskFirst bool
	// TrustCheckout lets it run in its caller's files as they are. Else what steers programs,
	// its own program with it, is taken from the branch. A program that obeys the checkout
	// whatever its settings are, such as opencode over ACP, is not started without it.
	TrustCheckout bool
}

// ToolPolicy names tools or groups such as "group:context". A nil Allow allows all;
// Deny wins (P23).
type ToolPolicy struct {
	Allow []string
	Deny  []string
}

// MCPServer is a server of the Model Context Protocol whose tools an agent may use: a
// program, or a URL.
type MCPServer struct {
	Name    string
	Command []string
	Env     map[string]string
	URL     string
	Headers map[string]string
	// Safe names tools, as the server calls them, that change nothing though the server
	// does not say so: agents that only analyse are given them, too.
	Safe []string
}

// Step is one step of a workflow (H25–H27). It has an Agent, or Parallel branches, or
// neither and a Goto. What Task and If may say is explained in package workflow.
type Step struct {
	ID       string
	Agent    string
	Task     string // a text/template over the workflow's data
	If       string // an expression; false skips the step
	Goto     string // the step to go back to once this one is reached and If holds
	Limit    int    // how often Goto may be taken; 0 means 1
	Produces string // artifact name under which the step's answer is kept (H4)
	Parallel []Step
}

// MayHandTo reports whether the allow-list of s lets it hand work to name (P19).
func (s Spec) MayHandTo(name string) bool {
	if !s.Restricted {
		return true
	}
	key := Key(name)
	return slices.ContainsFunc(s.DelegatesTo, func(n string) bool { return Key(n) == key })
}

// Targets are the agents that it is said to give work to: those named in DelegatesTo,
// and those of its steps.
func (s Spec) Targets() []string {
	names := slices.Clone(s.DelegatesTo)
	var add func([]Step)
	add = func(steps []Step) {
		for _, st := range steps {
			if st.Agent != "" {
				names = append(names, st.Agent)
			}
			add(st.Parallel)
		}
	}
	add(s.Steps)
	return names
}

// Can reports whether s has the capability (P11).
func (s Spec) Can(capability string) bool { return slices.Contains(s.Capabilities, capability) }

// rank orders the roles for MayTake; a higher one may hand to a lower one.
func (r Role) rank() int {
	switch r {
	case Admin:
		return 3
	case Developer:
		return 2
	case Specialist:
		return 1
	default:
		return 0
	}
}

// MayTake reports whether an agent of role to may take work from one of role
// from: nobody hands up, and a cli seat takes nothing (A17).
func MayTake(from, to Role) bool {
	switch {
	case to == CLI:
		return false
	case from == "" || to == "" || from == CLI:
		return true
	default:
		return from.rank() >= to.rank()
	}
}

// secretEndings mark variables that never leave the server by an allow-list; an
// agent that needs one is given it by name, under `env`.
var secretEndings = []string{"TOKEN", "KEY", "KEYS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "DATABASE_URL", "_DSN"}

// LooksSecret reports whether a variable of this name is taken for a secret: its value is
// kept out of texts, and out of programs that were not given it by name.
func LooksSecret(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(upper, "GATEHOUSE_") ||
		slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(upper, end) })
}
