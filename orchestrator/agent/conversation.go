package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Role of a message in a conversation with a model.
const (
	FromUser  = "user"      // the task, feedback, announcements
	FromModel = "assistant" // what the model said and which tools it called
	FromTools = "tool"      // the results of the calls of the message before
)

// Types of a Block.
const (
	TextBlock   = "text"
	CallBlock   = "tool_use"
	AnswerBlock = "tool_result"
	OpaqueBlock = "opaque" // a provider's own, such as signed thinking; only that provider gets it back
)

// Block is one part of a message, in no provider's format.
type Block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"` // of a text, or of a result
	// ID is the call's as the runner keeps it: unique in the conversation. A result
	// carries the id of the call that it answers (O18).
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name,omitempty"`     // the tool
	Input    json.RawMessage `json:"input,omitempty"`    // of a call: always a JSON object
	IsError  bool            `json:"is_error,omitempty"` // of a result; of a call: its input was no JSON object, and stands in Text
	Provider string          `json:"provider,omitempty"` // whose Opaque this is
	Opaque   json.RawMessage `json:"opaque,omitempty"`
}

type Message struct {
	Role   string  `json:"role"`
	Blocks []Block `json:"blocks"`
}

// PersonMessage is what a person said to an agent while it works.
type PersonMessage struct {
	ID   string    `json:"id"` // msg_…
	From string    `json:"from"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Told is it as an agent reads it.
func (m PersonMessage) Told() string {
	return fmt.Sprintf("%s says, at %s:\n\n%s", m.From, m.At.UTC().Format("2006-01-02 15:04 UTC"), m.Text)
}

// ToldAll is several of them as an agent reads them; "" for none.
func ToldAll(messages []PersonMessage) string {
	told := make([]string, len(messages))
	for i, m := range messages {
		told[i] = m.Told()
	}
	return strings.Join(told, "\n\n")
}

// Calls returns the tool calls of m, in order.
func (m Message) Calls() []Block {
	var calls []Block
	for _, b := range m.Blocks {
		if b.Type == CallBlock {
			calls = append(calls, b)
		}
	}
	return calls
}

// Text joins the text blocks of m.
func (m Message) Text() string {
	var text string
	for _, b := range m.Blocks {
		if b.Type == TextBlock {
			if text != "" {
				text += "\n"
			}
			text += b.Text
		}
	}
	return text
}

// Turn is one stored message of a conversation. A turn that is stored is never asked
// for again: a run that begins anew goes on behind the last one.
type Turn struct {
	N       int     `json:"n"` // counts from 1 within one generation of a delegation
	Message Message `json:"message"`
	Model   string  `json:"model,omitempty"` // provider/name that answered; "" unless FromModel
	Stop    string  `json:"stop,omitempty"`  // why the model stopped
	Usage   Usage   `json:"usage"`           // of this turn alone
	// Children are the delegations whose outcomes this turn carries, as results or as
	// announcements (P47): they are not given to the run again.
	Children []string `json:"children,omitempty"`
	// Messages are the ids of what people said that this turn carries; it is not stored with it.
	Messages []string      `json:"-"`
	At       time.Time     `json:"at"`
	Took     time.Duration `json:"took,omitempty"`
}

// Kinds of a Delta.
const (
	DeltaText     = "text"
	DeltaThinking = "thinking"
	DeltaTool     = "tool"  // a call: Tool names it, Text is a part of its input
	DeltaReset    = "reset" // the parts of this turn so far are void: the call failed, another try may follow
)

// Delta is a part of a message that is being written. It is shown and never stored.
type Delta struct {
	Turn int    `json:"turn"`
	Kind string `json:"kind"` // one of the kinds above
	Text string `json:"text"`
	Tool string `json:"tool,omitempty"` // name of the tool that is being called
}

// Member is an agent as another one sees it (P10, P14).
type Member struct {
	Name         string   `json:"name"`
	Role         string   `json:"role,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	About        string   `json:"about,omitempty"` // first line of its prompt
	// Refused is the code of the guard that would refuse handing work to it now, "" for none.
	Refused string `json:"refused,omitempty"`
}

// CheckResult is the result of one of the repository's checks.
type CheckResult struct {
	Command string `json:"command"`
	OK      bool   `json:"ok"`
	Output  string `json:"output"`
}

// Hops reads the values of HopsHeader: how many hand-overs between systems led to a request,
// at whatever door it comes. Without the header it is 0.
func Hops(values []string) (int, error) {
	if len(values) == 0 {
		return 0, nil
	}
	n, err := strconv.Atoi(values[0])
	if len(values) > 1 || err != nil || n < 0 || n > 1000 {
		return 0, fmt.Errorf("the header %s is not understood: send it once, with a number from 0 to 1000", HopsHeader)
	}
	return n, nil
}
