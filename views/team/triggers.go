package team

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/trigger"
	"gatehouse/views"
)

// TriggersPage is `/triggers`.
type TriggersPage struct {
	views.Chrome
	Triggers []trigger.Status
}

// TriggerPage is `/triggers/{name}`.
type TriggerPage struct {
	views.Chrome
	Trigger    trigger.Status
	Setup      []Fact // what to enter at the sender
	State      string // filter of the deliveries; "" all
	Deliveries []trigger.Delivery
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
	trigger.Trial
}

// DeliveryPage is `/triggers/{name}/deliveries/{id}`.
type DeliveryPage struct {
	views.Chrome
	D       trigger.Delivery
	When    string // the condition as it is now
	Agent   string
	Headers []Fact
	Dropped bool   // retention dropped the payload
	Body    string // one part of it, indented where it is JSON
	Part    int    // counted from 1
	Parts   int
	May     bool // may deliver again
	Gone    bool // the trigger is not configured any more
}

// refuses says whether the last that came was turned away at the door.
func refuses(t trigger.Status) bool {
	return t.Refused.Calls > 0 && (t.Last == nil || t.Refused.Last.After(t.Last.ReceivedAt))
}

// triggerLook is the badge of a trigger: a word, its role and its icon.
func triggerLook(t trigger.Status) badge.Badge {
	switch {
	case t.Problem != "":
		return badge.Badge{Word: "problem", Mark: "✕", Icon: "cross", Role: "bad"}
	case refuses(t):
		return badge.Badge{Word: "refuses calls", Mark: "⚠", Icon: "warn", Role: "bad"}
	case t.Last == nil && t.Kind == trigger.Webhook:
		return badge.Badge{Word: "never called", Mark: "○", Icon: "queued", Role: "neutral"}
	}
	return badge.Badge{Word: "works", Mark: "✓", Icon: "tick", Role: "ok"}
}

// kindWords says what a trigger is.
func kindWords(t trigger.Status) string {
	if t.Kind == trigger.Schedule {
		return "schedule"
	}
	switch t.Source {
	case trigger.GitHub:
		return "webhook from GitHub"
	case trigger.GitLab:
		return "webhook from GitLab"
	case trigger.Standard:
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
func deliveryLook(state trigger.DeliveryState) badge.Badge {
	switch state {
	case trigger.Stored:
		return badge.Badge{Word: "stored", Mark: "○", Icon: "queued", Role: "neutral"}
	case trigger.Started:
		return badge.Badge{Word: "started", Mark: "✓", Icon: "tick", Role: "ok"}
	case trigger.Filtered:
		return badge.Badge{Word: "filtered", Mark: "·", Icon: "reject", Role: "neutral"}
	case trigger.Skipped:
		return badge.Badge{Word: "skipped", Mark: "·", Icon: "square", Role: "neutral"}
	}
	return badge.Of(state)
}

// deliveryStates are those that the list can be filtered by; the last one is both that went wrong.
var deliveryStates = []string{"", "stored", "started", "filtered", "refused", "skipped", "failed", "refused,failed"}

// deliveryWords say a filter's states, one or several.
func deliveryWords(states string) string {
	var words []string
	for state := range strings.SplitSeq(states, ",") {
		words = append(words, deliveryLook(trigger.DeliveryState(state)).Word)
	}
	return strings.Join(words, " or ")
}

// signature says what is known of who sent a delivery. What has no good signature is
// answered 401 and not kept, so that strangers cannot fill the list.
func (p DeliveryPage) signature() string {
	switch {
	case p.D.Of != "":
		return "none: " + p.D.By + " delivered it again; the first one is below"
	case p.D.Kind == trigger.Schedule:
		return "none is needed: it was the time"
	case p.D.Source == trigger.GitHub:
		return "good: HMAC-SHA256 over the payload as it came, with the trigger's secret"
	case p.D.Source == trigger.GitLab:
		return "good: it carried the trigger's secret"
	}
	return "good: HMAC-SHA256 with the trigger's secret"
}

// whenResult says what became of the condition.
func (p DeliveryPage) whenResult() string {
	switch {
	case p.D.State == trigger.Filtered:
		return "not met"
	case p.D.State == trigger.Started:
		return "met"
	}
	return "not asked"
}

// GetsWork says who gets the work: an agent, or whoever has a capability.
func GetsWork(t trigger.Status) string {
	if t.Agent == "" {
		return "an agent for " + t.Capability
	}
	return t.Agent
}

// overlapWords and missedWords say what the settings of a schedule mean.
var (
	overlapWords = map[string]string{"skip": "the time is skipped", "queue": "it waits until that one has ended", "allow": "both run"}
	missedWords  = map[string]string{"skip": "skipped", "run": "made up for once"}
)

// again says what Redeliver will do.
func (p DeliveryPage) again() string {
	if p.D.Kind == trigger.Schedule {
		return fmt.Sprintf("Makes the task of this time again, as it is configured today, and hands it to %s. You are who asks for it.", p.Agent)
	}
	return fmt.Sprintf("Asks the condition again and, where it is met, makes the task of this payload as it is configured today and hands it to %s. You are who asks for it.", p.Agent)
}

// bad says whether something went wrong, and was not merely not wanted.
func bad(d trigger.Delivery) bool { return d.State == trigger.Refused || d.State == trigger.Failed }

// deliveryTitle is what a row is called: what the sender says happened.
func deliveryTitle(d trigger.Delivery) string {
	if event := views.OneLine(d.Event, 60); event != "" {
		return event
	}
	return "delivery"
}
