package wire

import (
	"encoding/json"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
)

// Delegation is one hop.
type Delegation struct {
	ID         string         `json:"id"`
	TaskID     string         `json:"task_id"`
	ParentID   Maybe          `json:"parent_id"` // null at the root
	From       string         `json:"from"`      // "" at the root
	To         string         `json:"to"`
	Text       string         `json:"text"`
	State      string         `json:"state"`
	Depth      int            `json:"depth"`
	Chain      []chain.Step   `json:"chain"`
	Result     *Result        `json:"result"`
	Error      *agent.Failure `json:"error"`
	Usage      agent.Usage    `json:"usage"`
	ApprovalID Maybe          `json:"approval_id"`
	CreatedAt  time.Time      `json:"created_at"`
	StartedAt  *time.Time     `json:"started_at"`
	EndedAt    *time.Time     `json:"ended_at"`

	// Beyond the contract.
	Since      time.Time `json:"since"` // when the state was entered
	Repository string    `json:"repository"`
	Branch     string    `json:"branch"` // what it works on, and where its change would land
	Tag        string    `json:"tag"`    // or what it reads: nothing lands on a tag
	Requester  string    `json:"requester"`
	Attempt    int       `json:"attempt"`
	Sandbox    string    `json:"sandbox"`
	Budget     *Budget   `json:"budget"`            // null where nothing is counted
	Problem    string    `json:"problem,omitempty"` // why a landing waits
	// Discarded says that changes of an agent that only analyses, and of those below it, were
	// thrown away.
	Discarded string `json:"discarded,omitempty"`
	// Message is what is said to whoever asked for something that is happening already.
	Message string `json:"message,omitempty"`
	// WaitsFor are the people who could say yes, for those who may read no requests.
	WaitsFor []string `json:"waits_for,omitempty"`
	// PausedAt is when people paused the task, in the answer for one delegation.
	PausedAt *time.Time `json:"paused_at,omitempty"`
	// Handover is the command object that came with the work.
	Handover *agent.Handover `json:"handover,omitempty"`
}

// Ended says that the state is final.
func (d Delegation) Ended() bool {
	switch d.State {
	case "completed", "failed", "rejected", "expired", "cancelled":
		return true
	}
	return false
}

// Result is the answer of a delegation.
type Result struct {
	Text      string           `json:"text"`
	Data      json.RawMessage  `json:"data"`
	Artifacts []agent.Artifact `json:"artifacts"`          // what the agent handed over beside its text
	Commit    string           `json:"commit,omitempty"`   // of the landing, "" when nothing landed
	Pushed    string           `json:"pushed,omitempty"`   // the branch of Commit, where it was pushed and not landed
	Declined  []string         `json:"declined,omitempty"` // changed files that people left out of Commit
}

// Budget is what a delegation and everything below it may use and has used.
type Budget struct {
	Limits   budget.Published `json:"limits"`   // what is absent is not limited
	Used     budget.Published `json:"used"`     // by its own run
	Settled  budget.Published `json:"settled"`  // by what it handed on and that has ended
	Reserved budget.Published `json:"reserved"` // for what it handed on and that is live
	Exceeded string           `json:"exceeded,omitempty"`
}

// Submission is the body of POST /tasks.
type Submission struct {
	Agent      string          `json:"agent,omitempty"`
	Capability string          `json:"capability,omitempty"`
	Text       string          `json:"text"`
	Repository string          `json:"repository,omitempty"`
	Ref        string          `json:"ref,omitempty"`
	Key        string          `json:"key,omitempty"`
	Complexity string          `json:"complexity,omitempty"`
	Budget     json.RawMessage `json:"budget,omitempty"` // {tokens, usd, handoffs, agents, time}
	DryRun     bool            `json:"dry_run,omitempty"`
	Source     *agent.Source   `json:"source,omitempty"`
	Handoffs   bool            `json:"handoffs,omitempty"` // enables hand-overs where they are off unless a task says so
	Follows    string          `json:"follows,omitempty"`  // a task of one's own: this goes on with its thread
	// Attachments are files that the agents of the task are given.
	Attachments []Upload `json:"attachments,omitempty"`
}

// Upload is a file that is attached to a task: in JSON its content is in base64.
type Upload struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type,omitempty"` // without it the name and the content tell
	Data      []byte `json:"data"`
}

// Attachment is a file that came with a task. URL is where its content is.
type Attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
	URL       string `json:"url"`
}

// Submitted is the new task, or the first one with that key.
type Submitted struct {
	ID           string `json:"id"`
	DelegationID string `json:"delegation_id"`
	State        string `json:"state"`
	Agent        string `json:"agent"`
	DryRun       bool   `json:"dry_run,omitempty"`
	Complexity   string `json:"complexity,omitempty"`
	Why          string `json:"why,omitempty"` // the classifier's reason (H24)
	// MessageID is set where the text was told to the agent that still works on this task.
	MessageID string  `json:"message_id,omitempty"`
	Budget    *Budget `json:"budget,omitempty"`
}

// Hop is the body of POST /delegations: what a run hands on. What stands below Handoff belongs to a hand-over.
type Hop struct {
	To         string            `json:"to,omitempty"`
	Capability string            `json:"capability,omitempty"`
	Text       string            `json:"text"`
	Context    map[string]string `json:"context,omitempty"`
	Spawn      bool              `json:"spawn,omitempty"` // the run goes on without waiting

	Handoff          bool                `json:"handoff,omitempty"` // the run ends with the child's answer
	Completed        string              `json:"completed,omitempty"`
	Artifacts        map[string]*string  `json:"artifacts,omitempty"` // where each is; null is not made yet
	ArtifactsCreated []string            `json:"artifacts_created,omitempty"`
	WorkflowState    agent.HandoverState `json:"workflow_state,omitzero"`
}

// Fork is the body of POST /delegations/{id}/fork: the last turn that is kept; 0 is the newest.
type Fork struct {
	Turn int `json:"turn"`
}

// Words is the body of POST /delegations/{id}/messages: what its agent is told while it works.
type Words struct {
	Text string `json:"text"`
	Key  string `json:"key,omitempty"` // the same key again is the same message
}

// Message is what a person said to an agent: queued until the agent was told, then delivered.
type Message struct {
	ID           string     `json:"id"`
	DelegationID string     `json:"delegation_id"`
	Agent        string     `json:"agent"`
	State        string     `json:"state"`
	From         string     `json:"from"`
	Via          string     `json:"via"`
	Text         string     `json:"text"`
	At           time.Time  `json:"at"`
	DeliveredAt  *time.Time `json:"delivered_at"`
}

// Messages is a list of them, oldest first. Of those that were delivered the newest are kept.
type Messages struct {
	Items []Message `json:"items"`
}

// Stop is the body of POST /delegations/cancel. With DryRun nothing is stopped and the answer counts what would be.
// Until, as such an answer gave it, leaves what is younger: the same call again stops nothing more.
type Stop struct {
	Agent  string     `json:"agent,omitempty"` // "" is everybody's work
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
	DryRun bool       `json:"dry_run,omitempty"`
}

// Stopped counts what was cancelled, or would be.
type Stopped struct {
	Agent       string    `json:"agent"` // "" for everybody's work
	Delegations int       `json:"delegations"`
	Tasks       int       `json:"tasks"`
	Landing     int       `json:"landing"` // left alone: a change lands at this moment
	Until       time.Time `json:"until"`
	DryRun      bool      `json:"dry_run"`
}

// Wait is one delegation that lives, with what it waits for. It is also the outbound map of A24: each hand-over that
// is under way, by its id.
type Wait struct {
	TaskID       string    `json:"task_id"`
	DelegationID string    `json:"delegation_id"`
	Agent        string    `json:"agent"`
	Text         string    `json:"text"` // first line of what it was asked
	Requester    string    `json:"requester"`
	State        string    `json:"state"`
	Repository   string    `json:"repository,omitempty"`
	For          string    `json:"waits_for"`
	People       []string  `json:"people"`   // whose yes is missing
	Children     []Below   `json:"children"` // live ones that it waits for
	Says         string    `json:"says"`
	Since        time.Time `json:"since"`
	ApprovalID   string    `json:"approval_id,omitempty"`
}

// Below is a live delegation that another one waits for.
type Below struct {
	ID      string    `json:"id"`
	Agent   string    `json:"agent"`
	State   string    `json:"state"`
	Since   time.Time `json:"since"` // when State was entered
	Spawned bool      `json:"spawned,omitempty"`
}

// Queue is how landing stands in one repository, for every face.
type Queue struct {
	Repository string    `json:"repository"`
	Waiting    int       `json:"waiting"` // approved changes that have not landed, the one that lands now included
	HeldUp     int       `json:"held_up"` // of these, those that something is in the way of
	Since      time.Time `json:"since"`   // when the first of them was approved
	// Landed and Pace: the last so many landings took so many seconds each, as their median.
	Landed int     `json:"landed"`
	Pace   float64 `json:"pace_seconds"`
	Left   float64 `json:"left_seconds"` // for all that nothing is in the way of, at this pace; 0: not known
	Says   string  `json:"says"`
}

// Waits is who waits for whom, newest first.
type Waits struct {
	Items    []Wait  `json:"items"`
	Next     Maybe   `json:"next"`
	Landings []Queue `json:"landings"` // of the repositories in which approved changes wait
	Cycle    bool    `json:"cycle"`    // always false; note says why
	Note     string  `json:"note"`
	Slots    Slots   `json:"slots"`
}

// Slots are the workers of the node that answers.
type Slots struct {
	Used int `json:"used"`
	Size int `json:"size"`
}
