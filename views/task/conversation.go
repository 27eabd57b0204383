package task

import (
	"strings"
	"time"

	"gatehouse/views"
)

// Conversation is the tab with what an agent and its model said.
type Conversation struct {
	Model    bool // the agent is one that talks with a model
	Run      int  // which run of the delegation, from 1
	Runs     int
	Last     int // number of the newest turn
	Turns    []Turn
	OlderURL string // earlier turns; empty at the first
	Later    bool   // there are newer turns than these
	Live     bool   // more may come at the end of these
}

// Turn is one message with the results of the calls that it makes.
type Turn struct {
	N        int
	Role     string // user, assistant, tool
	Agent    string // whose conversation it is
	From     string // who asked
	Model    string
	Stop     string
	At       time.Time
	Answered time.Time // when the results of its calls were there; zero before
	Took     time.Duration
	Usage    views.Usage
	Text     views.LongText
	Thinking []views.LongText
	Calls    []ToolCall
	Told     []TurnChild // delegations whose ends it announces
}

// ToolCall is a call of a tool with its result.
type ToolCall struct {
	ID     string
	Name   string
	About  string // its first argument
	Input  views.LongText
	Done   bool
	Failed bool // an error, or a refusal of a guard
	Result views.LongText
	Took   time.Duration // 0 where it is not known by itself
	Usage  views.Usage   // of the delegation that it made
	Child  *TurnChild    // the delegation that it made
}

// facts are what a call took and used, as far as that is known.
func (c ToolCall) facts() string {
	var words []string
	if c.Took > 0 {
		words = append(words, views.Duration(c.Took))
	}
	if c.Usage.Reported {
		words = append(words, c.Usage.Words())
	}
	if c.Done && len(c.Result.Text) > 0 {
		words = append(words, views.BytesSize(int64(len(c.Result.Text)+c.Result.Rest)))
	}
	return strings.Join(words, " · ")
}

// together is how long several calls took that were made at once.
func (t Turn) together() string {
	if len(t.Calls) < 2 || !t.Answered.After(t.At) {
		return ""
	}
	return views.Plural(len(t.Calls), "call", "calls") + ", " + views.Duration(t.Answered.Sub(t.At)) + " together"
}

// TurnChild is a link to a delegation below.
type TurnChild struct {
	ID   string
	Name string
}

// speaker is who says a turn.
func (t Turn) speaker() string {
	switch {
	case t.Role == "assistant":
		return t.Agent
	case len(t.Told) > 0:
		return "News for " + t.Agent
	case t.Role == "tool":
		return "Results for " + t.Agent
	case t.N == 1:
		return t.From
	}
	return "To " + t.Agent
}

// stopWords says why a model stopped where that was not the end of what it had to say.
func (t Turn) stopWords() string {
	switch t.Stop {
	case "", "end", "end_turn", "stop", "tool_use", "tool_calls", "calls":
		return ""
	case "max_tokens", "length":
		return "cut: it reached the most tokens of one answer"
	case "refusal", "content_filter":
		return "the provider refused to answer"
	}
	return "stopped: " + t.Stop
}

// callState is a call's state for icons and readers aloud.
func (c ToolCall) state() string {
	switch {
	case !c.Done:
		return "running"
	case c.Failed:
		return "failed"
	}
	return "completed"
}

// why is the first line of an error, which stands out where the call is folded.
func (c ToolCall) why() string {
	if !c.Failed {
		return ""
	}
	return views.OneLine(c.Result.Text, 300)
}
