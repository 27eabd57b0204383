package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/orchestrator/strictjson"
)

// Ask is what a run wants of people before it goes on: that a call of a tool may be made, or
// an answer. Exactly one of Action and Question is set.
type Ask struct {
	// Ref names the ask within a generation of its delegation: asked again under it, it is the
	// same ask. Without one, the same content that was not used up yet is the same ask.
	Ref      string
	Action   *Action
	Question *Question
	// Place is the folder of the attempt, "" where the input does not name it: the same call of
	// another attempt, which has another folder, is the same ask.
	Place string
}

// Action is a call of a tool that an agent wants to make.
type Action struct {
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`            // an object
	Server string          `json:"server,omitempty"` // whose tool it is, "" for the agent's own
	Hints  Hints           `json:"hints,omitzero"`
}

// Hints are what a tool's server says of it, nil where it says nothing.
type Hints struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// Question is what an agent asks people.
type Question struct {
	Text    string   `json:"text"`
	Choices []string `json:"choices,omitempty"` // answers to choose from; free text is taken, too
	To      string   `json:"to,omitempty"`      // the group that is asked, "" for whoever decides on the agent's work
}

// AnswerState is how far an ask is.
type AnswerState string

// The states of an ask.
const (
	AskOpen     AnswerState = "open"     // people are asked, or would be
	AskAllowed  AnswerState = "allowed"  // the call may be made
	AskRefused  AnswerState = "refused"  // the call may not be made, or nobody may be asked
	AskAnswered AnswerState = "answered" // the question has its answer
	AskExpired  AnswerState = "expired"  // nobody decided or answered in time
)

// Answer is what came of an ask.
type Answer struct {
	Ref   string
	ID    string // of the request, "" where nobody was asked
	State AnswerState
	// Input is what the call is made with: what was asked, or what a person made of it.
	Input json.RawMessage
	// Edited says that a person changed the input.
	Edited bool
	// Text is the answer to a question; of what was refused, or expired, why, for the agent.
	Text string
	By   string // who answered, "" for a rule
	// Begun says that the call was allowed to an attempt that was lost and that may have made it.
	Begun bool
}

// The bounds of an ask. It comes from agents, and is stored and shown whole.
const (
	MaxActionInput = 256 << 10 // bytes
	maxActionName  = 256       // bytes of a tool's name, and of its server's
	maxQuestion    = 16 << 10  // bytes
	maxChoices     = 12
	maxChoice      = 200 // bytes of each
)

// sentence is an error that agents read as it is.
type sentence string

func (s sentence) Error() string { return string(s) }

func unaskable(format string, args ...any) error { return sentence(fmt.Sprintf(format, args...)) }

// Check says in a sentence why nobody can be asked this, nil where people can be.
func (a Ask) Check() error {
	switch {
	case a.Action != nil && a.Question == nil:
		return a.Action.check()
	case a.Question != nil && a.Action == nil:
		return a.Question.check()
	}
	return unaskable("An ask has either an action or a question.")
}

func (a Action) check() error {
	if a.Tool == "" || len(a.Tool) > maxActionName || len(a.Server) > maxActionName || !utf8.ValidString(a.Tool+a.Server) {
		return unaskable("The call names no tool, or with more than %d bytes.", maxActionName)
	}
	if strings.ContainsFunc(a.Tool+a.Server, unicode.IsControl) {
		return unaskable("The name of the tool, or of its server, has control characters or line breaks.")
	}
	if len(a.Input) > MaxActionInput {
		return unaskable("The input of %s has %d bytes; %d is the limit of what people can be asked about.", a.Tool, len(a.Input), MaxActionInput)
	}
	if _, err := a.Fields(); err != nil {
		return unaskable("The input of %s is no JSON object: %v.", a.Tool, err)
	}
	return nil
}

// Fields is the input as an object.
func (a Action) Fields() (map[string]any, error) {
	var object map[string]any
	err := strictjson.Into(a.Input, &object, strictjson.MaxDepth)
	if err == nil && object == nil {
		err = errors.New("it is null")
	}
	return object, err
}

func (q Question) check() error {
	if strings.TrimSpace(q.Text) == "" || len(q.Text) > maxQuestion || !utf8.ValidString(q.Text) {
		return unaskable("The question has %d bytes. Ask with 1 to %d bytes of text.", len(q.Text), maxQuestion)
	}
	if len(q.Choices) > maxChoices {
		return unaskable("The question has %d choices; %d is the limit. Ask for fewer, or for a free answer.", len(q.Choices), maxChoices)
	}
	for i, c := range q.Choices {
		if strings.TrimSpace(c) == "" || len(c) > maxChoice || !utf8.ValidString(c) || slices.Index(q.Choices, c) != i {
			return unaskable("Choice %d of the question is empty, longer than %d bytes, or there twice.", i+1, maxChoice)
		}
	}
	return nil
}

// Content names what is asked, whatever the blanks between, and wherever the folder of the
// attempt lies: 64 hex digits.
func (a Ask) Content() string {
	if a.Action != nil {
		tight := bytes.Buffer{}
		if json.Compact(&tight, a.Action.Input) == nil {
			action := *a.Action
			if action.Input = tight.Bytes(); a.Place != "" {
				action.Input = bytes.ReplaceAll(action.Input, []byte(a.Place), []byte("."))
			}
			a.Action = &action
		}
	}
	text, err := json.Marshal(struct {
		Action   *Action   `json:"action,omitempty"`
		Question *Question `json:"question,omitempty"`
	}{a.Action, a.Question})
	if err != nil {
		return "" // what Check has passed always marshals
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
