package client

import (
	"bytes"
	"encoding/json"
	"time"
)

// Submission is what POST /tasks takes.
type Submission struct {
	Agent      string `json:"agent,omitempty"`
	Capability string `json:"capability,omitempty"`
	Text       string `json:"text"`
	Repository string `json:"repository,omitempty"`
	Ref        string `json:"ref,omitempty"`
	Key        string `json:"key,omitempty"`
	Complexity string `json:"complexity,omitempty"`
	Budget     any    `json:"budget,omitempty"`   // {tokens, usd, handoffs, agents, time}
	Handoffs   bool   `json:"handoffs,omitempty"` // enables hand-overs where they are off unless a task says so
}

// Submitted is the new task, or the first one with that key.
type Submitted struct {
	ID           string `json:"id"`
	DelegationID string `json:"delegation_id"`
	State        string `json:"state"`
	Agent        string `json:"agent"`
	Raw          Raw    `json:"-"`
}

// Step is one hand-over of a chain.
type Step struct {
	From string `json:"from"`
	To   string `json:"to"`
	Task string `json:"task"`
}

// Failure says why a delegation did not complete.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Budget is what a delegation and everything below it may use; nil fields are not limited.
type Budget struct {
	Limits struct {
		Tokens   *int64   `json:"tokens"`
		USD      *float64 `json:"usd"`
		Handoffs *int     `json:"handoffs"`
		Agents   *int     `json:"agents"`
		Time     string   `json:"time"` // "" is not limited
	} `json:"limits"`
	Reserved struct {
		Tokens int64 `json:"tokens"`
	} `json:"reserved"` // for live delegations below it
}

// Usage is what was used; a nil USD was not reported.
type Usage struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	USD          *float64 `json:"usd"`
}

// Result is the answer of a delegation.
type Result struct {
	Text   string          `json:"text"`
	Data   json.RawMessage `json:"data"`
	Commit string          `json:"commit"` // of the landing, "" when nothing landed
	Pushed string          `json:"pushed"` // the branch of Commit, where it was pushed and not landed
	// Declined are the changed files that people left out of the landing.
	Declined []string `json:"declined"`
	// Artifacts are what the agent handed over beside its text.
	Artifacts []Artifact `json:"artifacts"`
}

// Artifact is something an agent made that is not a change of the repository.
type Artifact struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Text      string `json:"text,omitempty"` // the whole of a short text
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"` // bytes
	URL       string `json:"url"`  // of the content, from the server's address on
}

// Delegation is one hop.
type Delegation struct {
	ID         string     `json:"id"`
	TaskID     string     `json:"task_id"`
	ParentID   string     `json:"parent_id"` // "" at the root
	From       string     `json:"from"`
	To         string     `json:"to"`
	Text       string     `json:"text"`
	State      string     `json:"state"`
	Depth      int        `json:"depth"`
	Chain      []Step     `json:"chain"`
	Result     *Result    `json:"result"`
	Error      *Failure   `json:"error"`
	Usage      Usage      `json:"usage"`
	Budget     *Budget    `json:"budget"` // nil where nothing is counted
	ApprovalID string     `json:"approval_id"`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at"`
	Since      time.Time  `json:"since"` // when the state was entered
	Repository string     `json:"repository"`
	Sandbox    string     `json:"sandbox"`
	Problem    string     `json:"problem"`   // why a landing waits
	WaitsFor   []string   `json:"waits_for"` // who could say yes to its change
	PausedAt   *time.Time `json:"paused_at"` // nil: its task is not paused
	Discarded  string     `json:"discarded"` // what was thrown away of an agent that only analyses, "" for nothing
	Message    string     `json:"message"`   // in the answer to a retry: that it is happening already
	Raw        Raw        `json:"-"`
}

// Ended says that the state is final.
func (d Delegation) Ended() bool {
	switch d.State {
	case "completed", "failed", "rejected", "expired", "cancelled":
		return true
	}
	return false
}

// Agent is one entry of the registry with its live state.
type Agent struct {
	Name         string   `json:"name"`
	Kind         string   `json:"kind"`
	Role         string   `json:"role"`
	Capabilities []string `json:"capabilities"`
	Repository   string   `json:"repository"`
	AnalysisOnly bool     `json:"analysis_only"`
	State        string   `json:"state"`
	Running      int      `json:"running"`
	Queued       int      `json:"queued"`
	Waiting      int      `json:"waiting"`
	Inbox        struct {
		Waiting int `json:"waiting"`
		Size    int `json:"size"`
		Percent int `json:"percent"`
	} `json:"inbox"`
	LastError string `json:"last_error"`
	Breaker   struct {
		State string     `json:"state"`
		Until *time.Time `json:"until"`
	} `json:"breaker"`
	Raw Raw `json:"-"`
}

// Check is the answer of a dry run of the guards.
type Check struct {
	Allowed bool   `json:"allowed"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// Verdicts are those of all guards, in order.
	Verdicts []struct {
		Guard   string `json:"guard"`
		Allowed bool   `json:"allowed"`
		Skipped bool   `json:"skipped"`
		Message string `json:"message"`
	} `json:"verdicts"`
	Raw Raw `json:"-"`
}

// Entry is one value of the shared context.
type Entry struct {
	Namespace string     `json:"namespace"`
	Key       string     `json:"key"`
	Value     string     `json:"value"`
	Agent     string     `json:"agent"`
	Scope     string     `json:"scope"` // task or house
	ExpiresAt *time.Time `json:"expires_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	Raw       Raw        `json:"-"`
}

// Life is how long a written value stays: TTL in whole seconds, else Never, else what the
// server has for the namespace. Extend pushes an existing expiry only forward.
type Life struct {
	TTL    time.Duration
	Never  bool
	Extend bool
}

// Use is one use of an entry: read, write, touch or delete.
type Use struct {
	N            int64     `json:"n"`
	Namespace    string    `json:"namespace"`
	Key          string    `json:"key"`
	Kind         string    `json:"kind"`
	Agent        string    `json:"agent"`
	DelegationID string    `json:"delegation_id"`
	TaskID       string    `json:"task_id"`
	At           time.Time `json:"at"`
}

// Topic is one namespace with how many entries it has.
type Topic struct {
	Namespace string    `json:"namespace"`
	Entries   int       `json:"entries"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Event is one fact. N and Cursor are 0 and "" for what is not stored.
type Event struct {
	TaskID       string          `json:"task_id"`
	N            int64           `json:"n"`
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	DelegationID string          `json:"delegation_id"`
	Actor        string          `json:"actor"`
	At           time.Time       `json:"at"`
	Data         json.RawMessage `json:"data"`
	Cursor       string          `json:"-"` // the SSE id, where it came by a stream
	Raw          Raw             `json:"-"`
}

// List is one page; Next is "" on the last one.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
	Raw   Raw    `json:"-"`
}

// Raw is a document as the server wrote it.
type Raw []byte

// keep decodes b into a type without methods and keeps the text beside it.
func keep(b []byte, into any, raw *Raw) error {
	if err := json.Unmarshal(b, into); err != nil {
		return err
	}
	*raw = bytes.Clone(b)
	return nil
}

func (r Raw) encode(plain any) ([]byte, error) {
	if r != nil {
		return r, nil
	}
	return json.Marshal(plain)
}

// UnmarshalJSON keeps the document.
func (s *Submitted) UnmarshalJSON(b []byte) error {
	type plain Submitted
	return keep(b, (*plain)(s), &s.Raw)
}

// MarshalJSON returns the document as it came.
func (s Submitted) MarshalJSON() ([]byte, error) {
	type plain Submitted
	return s.Raw.encode(plain(s))
}

// UnmarshalJSON keeps the document.
func (d *Delegation) UnmarshalJSON(b []byte) error {
	type plain Delegation
	return keep(b, (*plain)(d), &d.Raw)
}

// MarshalJSON returns the document as it came.
func (d Delegation) MarshalJSON() ([]byte, error) {
	type plain Delegation
	return d.Raw.encode(plain(d))
}

// UnmarshalJSON keeps the document.
func (a *Agent) UnmarshalJSON(b []byte) error {
	type plain Agent
	return keep(b, (*plain)(a), &a.Raw)
}

// MarshalJSON returns the document as it came.
func (a Agent) MarshalJSON() ([]byte, error) {
	type plain Agent
	return a.Raw.encode(plain(a))
}

// UnmarshalJSON keeps the document.
func (c *Check) UnmarshalJSON(b []byte) error {
	type plain Check
	return keep(b, (*plain)(c), &c.Raw)
}

// MarshalJSON returns the document as it came.
func (c Check) MarshalJSON() ([]byte, error) {
	type plain Check
	return c.Raw.encode(plain(c))
}

// UnmarshalJSON keeps the document.
func (e *Entry) UnmarshalJSON(b []byte) error {
	type plain Entry
	return keep(b, (*plain)(e), &e.Raw)
}

// MarshalJSON returns the document as it came.
func (e Entry) MarshalJSON() ([]byte, error) {
	type plain Entry
	return e.Raw.encode(plain(e))
}

// UnmarshalJSON keeps the document.
func (e *Event) UnmarshalJSON(b []byte) error {
	type plain Event
	return keep(b, (*plain)(e), &e.Raw)
}

// MarshalJSON returns the document as it came.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	return e.Raw.encode(plain(e))
}

// UnmarshalJSON keeps the document.
func (l *List[T]) UnmarshalJSON(b []byte) error {
	type plain List[T]
	return keep(b, (*plain)(l), &l.Raw)
}

// MarshalJSON returns the document as it came, or the joined pages.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l.Raw != nil {
		return l.Raw, nil
	}
	joined := struct {
		Items []T     `json:"items"`
		Next  *string `json:"next"`
	}{Items: l.Items}
	if joined.Items == nil {
		joined.Items = []T{}
	}
	if l.Next != "" {
		joined.Next = &l.Next
	}
	return json.Marshal(joined)
}
