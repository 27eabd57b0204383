package event

import (
	"fmt"
	"strings"
)

// What models say and use, and what agents do with the shared context.
const (
	MessageCompleted Type = "message.completed" // a model's turn: text, calls, model, usage
	MessageSent      Type = "message.sent"      // a person says something to an agent that works
	MessageDelivered Type = "message.delivered" // the agent was told what people said
	ToolCalled       Type = "tool.called"       // a program makes a call by itself
	ToolCompleted    Type = "tool.completed"    // a call has its result
	PlanChanged      Type = "plan.changed"      // of a program: the whole plan as it is now
	UsageRecorded    Type = "usage.recorded"
	ContextRead      Type = "context.read"
	ContextDeleted   Type = "context.deleted"
	ContextWritten   Type = "context.written"
)

type MessageCompletedData struct {
	Turn   int    `json:"turn"`
	Model  string `json:"model"`
	Stop   string `json:"stop"`
	Text   string `json:"text"`
	Calls  []Call `json:"calls"`
	TookMS int64  `json:"took_ms"`
}

// Call is a call of a tool, with the beginning of its input.
type Call struct {
	ID    string `json:"id"`
	Input string `json:"input"`
	Name  string `json:"name"`
}

func (d MessageCompletedData) sentence(Event, Words) string {
	var names []string
	for _, c := range d.Calls {
		names = append(names, c.Name)
	}
	calls := Prefixed("calls ", strings.Join(names, ", "))
	if text := oneOf(d.Text); text != "" {
		return text + Prefixed(" · ", calls)
	}
	return first(calls, Prefixed("stopped: ", d.Stop), "said nothing")
}

// MessageSentData is what a person said; Agent is whom it is for.
type MessageSentData struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Via   string `json:"via"`
	Text  string `json:"text"`
}

func (d MessageSentData) sentence(Event, Words) string {
	return "says to " + first(d.Agent, "the agent") + Prefixed(": ", oneOf(d.Text))
}

// MessageDeliveredData names what was told, by its ids; Turn is the one that carries it, 0
// for programs.
type MessageDeliveredData struct {
	IDs  []string `json:"ids"`
	Turn int      `json:"turn,omitempty"`
}

func (d MessageDeliveredData) sentence(Event, Words) string {
	if len(d.IDs) == 1 {
		return "reads the message"
	}
	return fmt.Sprintf("reads %d messages", len(d.IDs))
}

type ToolCalledData struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Title string `json:"title"` // in the program's words
	Input string `json:"input"` // its beginning
}

func (d ToolCalledData) sentence(Event, Words) string {
	return "calls " + first(d.Name, "a tool") + Prefixed(": ", first(oneOf(d.Title), oneOf(d.Input)))
}

type ToolCompletedData struct {
	Turn  int         `json:"turn"` // 0 for a program's own call
	ID    string      `json:"id"`
	Name  string      `json:"name"`
	OK    Maybe[bool] `json:"ok,omitzero"` // always given
	Text  string      `json:"text"`
	Diffs []FileDiff  `json:"diffs,omitempty"` // of a program's own call: what it changed
}

// FileDiff is the beginning of what a call changed in a file.
type FileDiff struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

func (d ToolCompletedData) sentence(Event, Words) string {
	if d.OK.V {
		return d.Name + Prefixed(": ", oneOf(d.Text))
	}
	return d.Name + " failed" + Prefixed(": ", oneOf(d.Text))
}

type PlanChangedData struct {
	Steps []PlanStep `json:"steps"`
}

// PlanStep is a step of a program's plan: pending, in_progress or completed.
type PlanStep struct {
	Text  string `json:"text"`
	State string `json:"state"`
}

func (d PlanChangedData) sentence(Event, Words) string {
	done, now := 0, ""
	for _, s := range d.Steps {
		switch {
		case s.State == "completed":
			done++
		case now == "" && s.State == "in_progress":
			now = oneOf(s.Text)
		}
	}
	return fmt.Sprintf("has done %d of %d steps of its plan", done, len(d.Steps)) + Prefixed(", now: ", now)
}

type UsageRecordedData struct {
	InputTokens  int64         `json:"input_tokens"`
	OutputTokens int64         `json:"output_tokens"`
	USD          *float64      `json:"usd"` // nil where the price is not known
	Model        Maybe[string] `json:"model,omitzero"`
	Turn         Maybe[int]    `json:"turn,omitzero"`
	Lost         bool          `json:"lost,omitempty"` // nobody heard the answer: it counts as reserved
}

func (d UsageRecordedData) sentence(Event, Words) string {
	price := "price not known"
	if d.USD != nil {
		price = fmt.Sprintf("$%.4f", *d.USD)
	}
	used := fmt.Sprintf("%d tokens in, %d out, %s", d.InputTokens, d.OutputTokens, price) + Prefixed(", ", d.Model.V)
	if d.Lost {
		used += ": a call whose answer nobody heard counts as it was reserved"
	}
	return used
}

// Entry names an entry of the shared context.
type Entry struct {
	Key       string `json:"key"`
	Namespace string `json:"namespace"`
}

// ContextReadData is the data of ContextRead: one event for all that was read at once.
type ContextReadData struct {
	How     string  `json:"how"` // given or asked
	Count   int     `json:"count"`
	Entries []Entry `json:"entries"` // the first of them

	// The entry of an event of before one was for several.
	Namespace string `json:"namespace,omitempty"`
	Key       string `json:"key,omitempty"`
}

// First is the first entry that was read.
func (d ContextReadData) First() Entry {
	if len(d.Entries) > 0 {
		return d.Entries[0]
	}
	return Entry{Namespace: d.Namespace, Key: d.Key}
}

func (d ContextReadData) sentence(Event, Words) string {
	what := d.First()
	said := "reads " + first(what.Namespace, "the shared context") + Prefixed("/", what.Key)
	if more := d.Count - 1; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}

type ContextDeletedData struct{ Entry }

func (d ContextDeletedData) sentence(Event, Words) string {
	return "deletes " + d.Namespace + Prefixed("/", d.Key)
}

type ContextWrittenData struct {
	Entry
	TTLSeconds Maybe[int64] `json:"ttl_seconds,omitzero"` // 0 for ever; a person's has none
}

func (d ContextWrittenData) sentence(Event, Words) string {
	return "writes " + d.Namespace + "/" + d.Key
}
