package event

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/origin"
)

// What happens to the house itself, in the stream "system".
const (
	ConfigurationChanged Type = "configuration.changed" // a server took another one than was recorded last
	ChannelHealth        Type = "channel.health"        // the other side of a channel changed its state
	ChannelRetried       Type = "channel.retried"       // what was given up is due again
	TriggerRefused       Type = "trigger.refused"       // calls of a webhook with a wrong signature
	TriggerNotStarted    Type = "trigger.not_started"   // a trigger starts nothing in its owner's name
	TriggerRedelivered   Type = "trigger.redelivered"   // a person had a delivery made again
	AuditExported        Type = "audit.exported"        // who took which rows out of the log
	HistoryVerified      Type = "audit.verified"
	HoldSet              Type = "hold.set"
	HoldLifted           Type = "hold.lifted"
	RetentionApplied     Type = "retention.applied"
)

type ConfigurationChangedData struct {
	How     string             `json:"how"` // AtStart, SIGHUP or reload
	Node    string             `json:"node"`
	File    string             `json:"file"`
	Was     string             `json:"was"` // digests
	Is      string             `json:"is"`
	Count   int                `json:"count"`
	Changes []ConfiguredChange `json:"changes"`        // the first of Count
	AsOf    Maybe[time.Time]   `json:"as_of,omitzero"` // the rules of then are in force again
}

// changesShown is how many changed settings a sentence names.
const changesShown = 5

func (d ConfigurationChangedData) sentence(Event, Words) string {
	parts := make([]string, 0, changesShown)
	for _, c := range d.Changes[:min(len(d.Changes), changesShown)] {
		switch {
		case c.Was == "":
			parts = append(parts, c.Key+" is "+c.Is)
		case c.Is == "":
			parts = append(parts, c.Key+" is gone, was "+c.Was)
		default:
			parts = append(parts, c.Key+" is "+c.Is+", was "+c.Was)
		}
	}
	if more := d.Count - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	how := map[string]string{AtStart: "at the start of " + d.Node, "SIGHUP": "by SIGHUP to " + d.Node}[d.How]
	how = cmp.Or(how, "by a reload of "+d.Node)
	what := "another configuration is in force "
	if d.Was == "" {
		what = "the configuration is recorded for the first time, "
	}
	if d.AsOf.Set {
		how += ", with the rules of before"
	}
	return what + how + Prefixed(": ", strings.Join(parts, "; "))
}

type ChannelHealthData struct {
	Channel origin.Channel `json:"channel"`
	State   string         `json:"state"`
	Detail  string         `json:"detail"`
	Was     string         `json:"was"`
	Node    string         `json:"node"`
}

func (d ChannelHealthData) sentence(Event, Words) string {
	return first(string(d.Channel), "a channel") + " is " + first(d.State, "in another state") + Prefixed(": ", d.Detail)
}

// ChannelRetriedData is the data of ChannelRetried; without a channel or letter all of them.
type ChannelRetriedData struct {
	Channel origin.Channel `json:"channel"`
	Letter  string         `json:"letter"`
	Count   int64          `json:"count"`
}

func (d ChannelRetriedData) sentence(Event, Words) string {
	return fmt.Sprintf("has %d messages that were given up delivered again", d.Count) + Prefixed(" in ", d.Channel)
}

type TriggerRefusedData struct {
	Trigger string    `json:"trigger"`
	Calls   int64     `json:"calls"`
	Last    time.Time `json:"last"`
	Reason  string    `json:"reason"`
	Address string    `json:"address"`
}

func (d TriggerRefusedData) sentence(Event, Words) string {
	return fmt.Sprintf("%d calls of %s were refused", d.Calls, first(d.Trigger, "a webhook")) + Prefixed(": ", d.Reason)
}

type TriggerNotStartedData struct {
	Trigger  string `json:"trigger"`
	Delivery string `json:"delivery"`
	Code     string `json:"code"`
	Message  string `json:"message"`
}

func (d TriggerNotStartedData) sentence(Event, Words) string {
	return first(d.Message, "a trigger started nothing")
}

type TriggerRedeliveredData struct {
	Trigger  string `json:"trigger"`
	Delivery string `json:"delivery"`
	As       string `json:"as"` // the new delivery
}

func (d TriggerRedeliveredData) sentence(Event, Words) string {
	return "has a delivery made again" + Prefixed(" of ", d.Trigger)
}

// AuditExportedData is the data of AuditExported. The list "log" is the log in its own order,
// taken by the filters that are given.
type AuditExportedData struct {
	List   string        `json:"list"`
	Format string        `json:"format"`
	Filter Maybe[string] `json:"filter,omitzero"`
	Rows   Maybe[int64]  `json:"rows,omitzero"`
	UpTo   Maybe[int64]  `json:"up_to,omitzero"` // the position in the log
	Type   string        `json:"type,omitempty"`
	Actor  string        `json:"actor,omitempty"`
	TaskID string        `json:"task_id,omitempty"`
	From   string        `json:"from,omitempty"`
	To     string        `json:"to,omitempty"`
}

func (d AuditExportedData) sentence(Event, Words) string {
	said := "exports the list " + d.List
	if d.Rows.Set {
		said += fmt.Sprintf(", %d rows", d.Rows.V)
	}
	return said + Prefixed(" as ", d.Format) + Prefixed(": ", d.Filter.V)
}

type HistoryVerifiedData struct {
	Tasks    int   `json:"tasks"`
	Seals    int   `json:"seals"`
	Position int64 `json:"position"`
	Problems int   `json:"problems"`
}

func (d HistoryVerifiedData) sentence(Event, Words) string {
	return fmt.Sprintf("verified the history: %d tasks, %d problems", d.Tasks, d.Problems)
}

type HoldSetData struct {
	Hold    string `json:"hold"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Request string `json:"request"`
	Reason  string `json:"reason"`
}

func (d HoldSetData) sentence(Event, Words) string {
	return "keeps " + first(d.Subject, "something") + " from being removed" + Prefixed(": ", d.Reason)
}

type HoldLiftedData struct {
	Hold    string `json:"hold"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
}

func (d HoldLiftedData) sentence(Event, Words) string {
	return "lifts the hold on " + first(d.Subject, "something") + Prefixed(": ", d.Reason)
}

type RetentionAppliedData struct {
	What   string `json:"what"`
	Tasks  int    `json:"tasks"`
	Events int    `json:"events"`
	Blobs  int    `json:"blobs"`
	UpTo   string `json:"up_to"`
}

func (d RetentionAppliedData) sentence(Event, Words) string {
	return fmt.Sprintf("removes %s of %d tasks that ended up to %s", first(d.What, "data"), d.Tasks, d.UpTo)
}

// AtStart is how a configuration is taken by a start, which is nobody's word that it shall
// count; see Taken.
const AtStart = "start"

// Configured is one setting in force. No secret is in its value.
type Configured struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Sealed says that the value is a digest of what is written; events do not tell it.
	Sealed bool `json:"sealed,omitempty"`
	// Rule says that it is about who may do what and who must say yes; events name these first.
	Rule bool `json:"-"`
}

// ConfiguredChange is one setting that differs; nothing stands for what is not set.
type ConfiguredChange struct {
	Key string `json:"key"`
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}

// Taken is who or which process took a configuration.
type Taken struct {
	Actor string // a person, or system
	How   string // AtStart, SIGHUP or reload
	Node  string
	File  string // "" when there is none
}
