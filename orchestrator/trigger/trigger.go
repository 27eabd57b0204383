// Package trigger is what starts tasks without a person at the keyboard: webhooks and
// schedules, what they may carry, and when they fire. Everything that a delivery brings is
// hostile until proven otherwise.
//
// It is pure: orchestrator/trigger/intake takes deliveries in and makes tasks of them, the store
// keeps them. A trigger is compiled once, when the configuration is read: its condition,
// its templates and its times (compile.go). Then for each delivery: who sent it
// (verify.go), what it says (strictjson), whether it fires (condition.go) and which text
// it makes (template.go).
//
// The room imports libraries and the leaf budget, and no other room of the house.
package trigger

import "time"

// Kind is webhook or schedule.
type Kind string

const (
	Webhook  Kind = "webhook"
	Schedule Kind = "schedule"
)

// Source says how a webhook is signed and named.
type Source string

const (
	GitHub   Source = "github"   // X-Hub-Signature-256, X-GitHub-Delivery, X-GitHub-Event
	GitLab   Source = "gitlab"   // X-Gitlab-Token or its signing token, X-Gitlab-Event-UUID, X-Gitlab-Event
	Standard Source = "standard" // webhook-id, webhook-timestamp, webhook-signature
	HMAC     Source = "hmac"     // a header of the trigger's own with a hex or base64 HMAC-SHA256 of the body
)

// Delivery is one call of a webhook, or one time of a schedule, as it is kept: stored
// before anything is made of it, so that a lost answer loses nothing.
type Delivery struct {
	ID         string // whk_…
	Trigger    string
	Kind       Kind
	Source     Source
	ExternalID string            // the sender's id of this delivery; of a schedule its time
	BodyHash   string            // SHA-256 of the body, hex: a repeat under another id is the same
	Event      string            // the sender's name of what happened: workflow_run
	Headers    map[string]string // those that matter, without secrets
	Body       []byte            // as it came; nil once retention dropped it
	State      DeliveryState
	Code       string // of a refusal or failure
	Message    string // a sentence for people
	Text       string // the task's text as the template made it
	TaskID     string
	Of         string // the delivery that this one was delivered again from, "" for a first one
	By         string // who delivered it again
	ByID       string // … as usr_…
	Attempts   int
	ReceivedAt time.Time
	DueAt      time.Time // when it is looked at again; of stored ones
	DoneAt     *time.Time
	Repeats    int // how often the sender sent it again
}

// DeliveryState is where a delivery stands.
type DeliveryState string

// The states. The runner moves a delivery out of Stored; the others have ended.
const (
	Stored   DeliveryState = "stored"   // kept, and nothing made of it yet
	Started  DeliveryState = "started"  // it made a task
	Filtered DeliveryState = "filtered" // the condition `when` was not met
	Refused  DeliveryState = "refused"  // unreadable, or the engine refused the task: Code and Message say why
	Skipped  DeliveryState = "skipped"  // of a schedule: the one before still ran, or its time had passed
	Failed   DeliveryState = "failed"   // tried until it was given up
)

// DeliveryPrefix begins the ids of deliveries.
const DeliveryPrefix = "whk_"

// Status is how one trigger stands, for lists.
type Status struct {
	Name   string
	Kind   Kind
	Source Source
	Agent  string
	// Capability chooses the agent where Agent is empty.
	Capability string
	Repository string
	Owner      string
	Window     time.Duration // of a webhook: how old a call may be, or for how long the same body is a repeat
	Task       string        // the template
	When       string
	Cron       string
	Zone       string // of a schedule: its time zone
	Overlap    string // skip, queue or allow
	Missed     string // skip or run
	URL        string // of a webhook: where deliveries go
	Problem    string // why it cannot work as configured; "" when it can
	Next       []time.Time
	Last       *Delivery
	Failures   int // deliveries of the last day that were refused or failed
	Refused    Refusals
}

// Filter chooses deliveries; zero values choose everything.
type Filter struct {
	Trigger string
	States  []DeliveryState
	Kind    Kind
	From    time.Time
	After   string // id of the last one of the page before
	Limit   int    // 0 means 50; 200 is the most
}

// Page is one page of deliveries, newest first and without their bodies; Next is "" on
// the last one.
type Page struct {
	Items []Delivery
	Next  string
}

// Sample is what a trigger is tried with. Nothing of it is stored.
type Sample struct {
	Body  []byte
	Event string // the sender's name of what happened
}

// Trial is what a trigger would make of a sample.
type Trial struct {
	Fires   bool
	Agent   string // who would get the task
	Text    string // the task's text
	Key     string // the idempotency key, where the trigger has a template for it
	Asks    string // why a person is asked before the agent works, "" where nobody is
	Code    string // why it does not fire: filtered, or the code of a refusal
	Message string // the same as a sentence
}

func States() []DeliveryState {
	return []DeliveryState{Stored, Started, Filtered, Refused, Skipped, Failed}
}

// MaxBody is the largest body that a webhook may send, in bytes. Sources send up to
// 25 MB; what a task is made of stands in far less.
const MaxBody = 1 << 20

// Why a call is answered 401, or 429. A stranger is not told which.
const (
	Unsigned       = "no signature as this source makes it"
	WrongSignature = "the signature is wrong, or too old"
	OverRate       = "more calls than its rate lets through"
)

// Refusals counts the calls of a webhook that were answered 401 or 429. Of the last one it has
// what was wrong and where it came from; the call itself is not kept.
type Refusals struct {
	Calls   int64
	Last    time.Time
	Reason  string
	Address string
}

// And is both counts together, with the later of the last calls.
func (r Refusals) And(o Refusals) Refusals {
	if o.Last.After(r.Last) {
		r.Last, r.Reason, r.Address = o.Last, o.Reason, o.Address
	}
	r.Calls += o.Calls
	return r
}
