package team

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/trigger"
	"gatehouse/views"
)

// TriggersPage is `/triggers`.
type TriggersPage struct {
	views.Chrome
	Triggers []TriggerRow
}

// TriggerRow is one trigger as lists show it.
type TriggerRow struct {
	Name     string
	Kind     string // webhook or schedule
	Source   string // github, gitlab, standard, hmac
	Agent    string // "" where a capability is asked for
	Who      string // the agent, or whoever has the capability
	Owner    string
	Cron     string
	Zone     string // of the schedule
	URL      string // where deliveries go
	Problem  string // why it cannot work; "" when it can
	Next     []time.Time
	Last     *DeliveryRow // nil: none yet
	Failures int          // of the last day
	Refused  trigger.Refusals
}

// DeliveryRow is one delivery as lists show it.
type DeliveryRow struct {
	ID       string
	Trigger  string
	State    string
	Event    string
	Code     string
	Message  string
	TaskID   string
	Of       string // delivered again from that one
	By       string // by that person
	Repeats  int
	Attempts int
	At       time.Time
	DueAt    time.Time // of stored ones
	DoneAt   time.Time // zero: not yet
}

// TriggerPage is `/triggers/{name}`.
type TriggerPage struct {
	views.Chrome
	Trigger    TriggerRow
	Task       string // the template
	When       string
	Overlap    string
	Missed     string
	Setup      []Fact // what to enter at the sender
	State      string // filter of the deliveries; "" all
	Deliveries []DeliveryRow
	Older      string // address of the next page; empty on the last
	Later      bool   // this is not the first page
	MayTry     bool
	MayOpen    bool // may read what came
	Try        TryForm
}

// TryForm is a sample and what the trigger would make of it.
type TryForm struct {
	Body, Event string
	Asked       bool
	Fires       bool
	Agent       string
	Text        string
	Key         string
	Asks        string // that a person is asked before the agent works
	Code        string
	Message     string
}

// DeliveryPage is `/triggers/{name}/deliveries/{id}`.
type DeliveryPage struct {
	views.Chrome
	Kind     string
	Source   string
	D        DeliveryRow
	External string // the sender's id
	When     string // the condition as it is now
	Text     string // what the template made
	Agent    string
	Headers  []Fact
	Hash     string
	Size     int    // bytes of the payload
	Dropped  bool   // retention dropped the payload
	Body     string // one part of it, indented where it is JSON
	Part     int    // counted from 1
	Parts    int
	May      bool // may deliver again
	Gone     bool // the trigger is not configured any more
}

// refuses says whether the last that came was turned away at the door.
func (t TriggerRow) refuses() bool {
	return t.Refused.Calls > 0 && (t.Last == nil || t.Refused.Last.After(t.Last.At))
}

// look is the badge of a trigger: a word, its role and its icon.
func (t TriggerRow) look() badge.Badge {
	switch {
	case t.Problem != "":
		return badge.Badge{Word: "problem", Mark: "✕", Icon: "cross", Role: "bad"}
	case t.refuses():
		return badge.Badge{Word: "refuses calls", Mark: "⚠", Icon: "warn", Role: "bad"}
	case t.Last == nil && t.Kind == "webhook":
		return badge.Badge{Word: "never called", Mark: "○", Icon: "queued", Role: "neutral"}
	}
	return badge.Badge{Word: "works", Mark: "✓", Icon: "tick", Role: "ok"}
}

// kindWords says what a trigger is.
func (t TriggerRow) kindWords() string {
	if t.Kind == "schedule" {
		return "schedule"
	}
	switch t.Source {
	case "github":
		return "webhook from GitHub"
	case "gitlab":
		return "webhook from GitLab"
	case "standard":
		return "Standard Webhooks"
	}
	return "signed webhook"
}

// OnlyHere says whether an address can be reached from this computer only: loopback, or a
// host without a dot.
func OnlyHere(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return ip.IsLoopback()
	}
	return !strings.Contains(strings.TrimSuffix(u.Hostname(), ".localhost"), ".")
}

// deliveryLook is how the state of a delivery reads; refused and failed look as everywhere.
func deliveryLook(state string) badge.Badge {
	switch state {
	case "stored":
		return badge.Badge{Word: "stored", Mark: "○", Icon: "queued", Role: "neutral"}
	case "started":
		return badge.Badge{Word: "started", Mark: "✓", Icon: "tick", Role: "ok"}
	case "filtered":
		return badge.Badge{Word: "filtered", Mark: "·", Icon: "reject", Role: "neutral"}
	case "skipped":
		return badge.Badge{Word: "skipped", Mark: "·", Icon: "square", Role: "neutral"}
	}
	return views.StateOf(state)
}

// deliveryStates are those that the list can be filtered by; the last one is both that went wrong.
var deliveryStates = []string{"", "stored", "started", "filtered", "refused", "skipped", "failed", "refused,failed"}

// deliveryWords say a filter's states, one or several.
func deliveryWords(states string) string {
	var words []string
	for state := range strings.SplitSeq(states, ",") {
		words = append(words, deliveryLook(state).Word)
	}
	return strings.Join(words, " or ")
}

// signature says what is known of who sent a delivery. What has no good signature is
// answered 401 and not kept, so that strangers cannot fill the list.
func (p DeliveryPage) signature() string {
	switch {
	case p.D.Of != "":
		return "none: " + p.D.By + " delivered it again; the first one is below"
	case p.Kind == "schedule":
		return "none is needed: it was the time"
	case p.Source == "github":
		return "good: HMAC-SHA256 over the payload as it came, with the trigger's secret"
	case p.Source == "gitlab":
		return "good: it carried the trigger's secret"
	}
	return "good: HMAC-SHA256 with the trigger's secret"
}

// whenResult says what became of the condition.
func (p DeliveryPage) whenResult() string {
	switch {
	case p.D.State == "filtered":
		return "not met"
	case p.D.State == "started":
		return "met"
	}
	return "not asked"
}

// overlapWords and missedWords say what the settings of a schedule mean.
var (
	overlapWords = map[string]string{"skip": "the time is skipped", "queue": "it waits until that one has ended", "allow": "both run"}
	missedWords  = map[string]string{"skip": "skipped", "run": "made up for once"}
)

// again says what Redeliver will do.
func (p DeliveryPage) again() string {
	if p.Kind == "schedule" {
		return fmt.Sprintf("Makes the task of this time again, as it is configured today, and hands it to %s. You are who asks for it.", p.Agent)
	}
	return fmt.Sprintf("Asks the condition again and, where it is met, makes the task of this payload as it is configured today and hands it to %s. You are who asks for it.", p.Agent)
}

// bad says whether something went wrong, and was not merely not wanted.
func (d DeliveryRow) bad() bool { return d.State == "refused" || d.State == "failed" }

// title is what a row is called: what the sender says happened.
func (d DeliveryRow) title() string {
	if event := views.OneLine(d.Event, 60); event != "" {
		return event
	}
	return "delivery"
}
