package wire

import (
	"encoding/json"
	"time"

	"gatehouse/orchestrator/guard"
)

// Agent is one entry of the registry with its live state.
type Agent struct {
	Name          string   `json:"name"`
	Kind          string   `json:"kind"`
	Role          string   `json:"role"`
	Capabilities  []string `json:"capabilities"`
	DelegatesTo   []string `json:"delegates_to"` // null: anyone
	Repository    string   `json:"repository"`
	Projects      []string `json:"projects"`      // the repositories that it works in
	InstanceName  string   `json:"instance_name"` // what it is called here, and answers to
	AnalysisOnly  bool     `json:"analysis_only"`
	AskFirst      bool     `json:"ask_first"`      // a person is asked before it is handed work
	TrustCheckout bool     `json:"trust_checkout"` // it runs in its caller's files as they are
	Approval      string   `json:"approval"`
	State         string   `json:"state"` // running, queued, waiting or idle
	Running       int      `json:"running"`
	Queued        int      `json:"queued"`
	Waiting       int      `json:"waiting"`
	Inbox         Inbox    `json:"inbox"`
	LastError     string   `json:"last_error"`

	LastAt  *time.Time `json:"last_at"`
	Breaker Breaker    `json:"breaker"`
}

// Inbox says how full an agent's queue is (A35); above 100 % more wait than it should hold.
type Inbox struct {
	Waiting int `json:"waiting"`
	Size    int `json:"size"`
	Percent int `json:"percent"`
}

// Breaker says whether hand-overs to an agent are let through (H11).
type Breaker struct {
	State    string     `json:"state"` // closed, open or half_open
	Failures int        `json:"failures"`
	OpenedAt *time.Time `json:"opened_at,omitempty"`
	Until    *time.Time `json:"until,omitempty"` // no probe before
	Probe    string     `json:"probe,omitempty"` // the delegation that tries
	Reason   string     `json:"reason,omitempty"`
}

// HopQuestion is the body of POST /agents/check.
type HopQuestion struct {
	From   string `json:"from"`
	To     string `json:"to"`
	TaskID string `json:"task_id"`
}

// HopAnswer says whether the hop may be made; code and message are the refusal's.
type HopAnswer struct {
	Allowed  bool            `json:"allowed"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message"`
	Verdicts []guard.Verdict `json:"verdicts"` // of all guards, in order
}

// NewEntry is the body of PUT /context/{ns}/{key}.
type NewEntry struct {
	Value      *string `json:"value"`
	TTLSeconds *int64  `json:"ttl_seconds,omitempty"`
	TTL        *string `json:"ttl,omitempty"`
	// Extend pushes the expiry of an existing entry only forward; 90 days without a ttl (K39).
	Extend bool `json:"extend,omitempty"`
}

// Life is the body of POST /context/{ns}/{key}/touch.
type Life struct {
	TTLSeconds *int64  `json:"ttl_seconds,omitempty"`
	TTL        *string `json:"ttl,omitempty"` // performance, learnings, security, memory, never, 24h, 30d …
}

// RequestPrefix is how the id of every request begins.
const RequestPrefix = "apr_"

// NewHold is the body of POST /holds. One of the first four says what is held.
type NewHold struct {
	Task       string `json:"task,omitempty"`
	Request    string `json:"request,omitempty"`
	Repository string `json:"repository,omitempty"`
	Everything bool   `json:"everything,omitempty"`
	Reason     string `json:"reason"`
}

// Trigger is what makes tasks by itself.
type Trigger struct {
	Name       string      `json:"name"`
	Kind       string      `json:"kind"`
	Source     Maybe       `json:"source"`
	Agent      Maybe       `json:"agent"`
	Capability Maybe       `json:"capability"`
	Repository Maybe       `json:"repository"`
	Owner      string      `json:"owner"`
	Task       string      `json:"task"`
	When       Maybe       `json:"when"`
	URL        Maybe       `json:"url"`
	Window     Maybe       `json:"window"`
	Cron       Maybe       `json:"cron"`
	Timezone   Maybe       `json:"timezone"`
	Overlap    Maybe       `json:"overlap"`
	Missed     Maybe       `json:"missed"`
	Next       []time.Time `json:"next"`
	Problem    Maybe       `json:"problem"`
	Last       *Delivery   `json:"last"`
	Failures   int         `json:"failures"` // of the last 24 hours
	Refused    *Refused    `json:"refused"`  // null: none ever
}

// Refused counts the calls that were answered 401 or 429, and tells of the last one.
type Refused struct {
	Calls   int64     `json:"calls"`
	LastAt  time.Time `json:"last_at"`
	Reason  string    `json:"reason"`
	Address string    `json:"address"`
}

// Delivery is one call of a webhook, or one time of a schedule. What it carried is absent in lists, and where it is
// not kept any more.
type Delivery struct {
	ID         string     `json:"id"`
	Trigger    string     `json:"trigger"`
	Kind       string     `json:"kind"`
	Source     Maybe      `json:"source"`
	ExternalID Maybe      `json:"external_id"`
	Event      Maybe      `json:"event"`
	BodyHash   Maybe      `json:"body_sha256"`
	State      string     `json:"state"`
	Code       Maybe      `json:"code"`
	Message    Maybe      `json:"message"`
	TaskID     Maybe      `json:"task_id"`
	Of         Maybe      `json:"redelivery_of"`
	By         Maybe      `json:"redelivered_by"`
	Repeats    int        `json:"repeats"`
	Attempts   int        `json:"attempts"`
	ReceivedAt time.Time  `json:"received_at"`
	DoneAt     *time.Time `json:"done_at"`

	Text    Maybe             `json:"text,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Payload *string           `json:"payload,omitempty"`
}

// Made says that the delivery makes a task, or has made one.
func (d Delivery) Made() bool { return d.State == "stored" || d.State == "started" }

// MaxPayload is the largest body that a webhook may send, in bytes.
const MaxPayload = 1 << 20

// Sample is the body of POST /triggers/{name}/test: a payload, and what the sender would call it.
type Sample struct {
	Payload json.RawMessage `json:"payload"`
	Event   string          `json:"event"`
}

// Trial says what a trigger would make of a sample.
type Trial struct {
	Fires   bool  `json:"fires"`
	Agent   Maybe `json:"agent"`
	Text    Maybe `json:"text"`
	Key     Maybe `json:"key"`
	Asks    Maybe `json:"asks"` // that a person is asked before the agent works
	Code    Maybe `json:"code"`
	Message Maybe `json:"message"`
}

// PolicyRule is a rule as it is written: in gatehouse.yaml, on the page of the policy and to be tried.
type PolicyRule struct {
	Name    string   `json:"name" yaml:"name"`
	When    string   `json:"when" yaml:"when"`
	Need    *int     `json:"need,omitempty" yaml:"need,omitempty"`
	From    []string `json:"from,omitempty" yaml:"from,omitempty,flow"`
	Deny    bool     `json:"deny,omitempty" yaml:"deny,omitempty"`
	Shadow  bool     `json:"shadow,omitempty" yaml:"shadow,omitempty"`
	Expires string   `json:"expires,omitempty" yaml:"expires,omitempty"`
}

// PolicyTest is the body of POST /policy/test. Without rules those in force are tried.
type PolicyTest struct {
	Since string        `json:"since"` // how far back, e.g. 30d
	Rules *[]PolicyRule `json:"rules,omitempty"`
	// Actions are rules about calls of tools; absent, as rules, those in force.
	Actions *[]PolicyRule `json:"actions,omitempty"`
}

// PolicyTrial is what rules would have said of past requests.
type PolicyTrial struct {
	Since    time.Time      `json:"since"`
	Version  string         `json:"version"`
	Requests int            `json:"requests"` // that were looked at
	Same     int            `json:"same"`
	Effects  map[string]int `json:"effects"`
	Rules    map[string]int `json:"rules"`   // requests by the rule that would decide
	Changes  []PolicyChange `json:"changes"` // newest first
	Calls    CallTrial      `json:"calls"`
}

// CallTrial is what rules would have said of the calls that people were asked about. Those that
// passed, or were denied at once, are not kept with their input.
type CallTrial struct {
	Version  string         `json:"version"`
	Requests int            `json:"requests"` // that were looked at
	Denied   int            `json:"denied"`
	Asked    int            `json:"asked"`
	Passed   int            `json:"passed"`
	Same     int            `json:"same"`
	Effects  map[string]int `json:"effects"`
	Rules    map[string]int `json:"rules"`   // calls by the rule that would decide
	Changes  []PolicyChange `json:"changes"` // newest first
}

// PolicyChange is one request that would have gone otherwise.
type PolicyChange struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Title      string    `json:"title"`
	Agent      string    `json:"agent"`
	Repository string    `json:"repository"`
	State      string    `json:"state"`
	Was        Ruled     `json:"was"`
	Would      Ruled     `json:"would"`
	Effect     string    `json:"effect"`
	Notes      []string  `json:"notes,omitempty"` // why a rule that matches would not have decided
}

// Ruled is a rule as it decided, or would have.
type Ruled struct {
	Name    string   `json:"name"`
	When    string   `json:"when,omitempty"`
	Need    int      `json:"need"`
	From    []string `json:"from"`
	Deny    bool     `json:"deny,omitempty"`
	Widened int      `json:"widened,omitempty"` // how many groups at the end of From an escalation added
	OnNo    string   `json:"on_no,omitempty"`
	Version string   `json:"version,omitempty"` // of the whole list of rules
}
