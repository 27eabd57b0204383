package openai

import (
	"encoding/json"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"
)

// request is the body of a call, as far as we use it.
type request struct {
	Model               string        `json:"model"`
	Messages            []message     `json:"messages"`
	Tools               []tool        `json:"tools,omitempty"`
	MaxTokens           int64         `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64         `json:"max_completion_tokens,omitempty"`
	Stream              bool          `json:"stream"`
	StreamOptions       streamOptions `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// message is one message. A result has a content even when it is empty; a turn that only
// calls has none.
type message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function calledFunction `json:"function"`
}

type calledFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// typeFunction is the API's type of all our tools and their calls.
const typeFunction = "function"

// request makes the body of r.
func (c *Client) request(r model.Request) request {
	q := request{Model: r.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true}}
	if r.MaxTokens > 0 {
		// OpenAI's newer models refuse max_tokens, most compatible servers know nothing else.
		if c.o.BaseURL == "" {
			q.MaxCompletionTokens = r.MaxTokens
		} else {
			q.MaxTokens = r.MaxTokens
		}
	}
	if r.System != "" {
		q.Messages = append(q.Messages, message{Role: "system", Content: &r.System})
	}
	for _, m := range r.Messages {
		q.Messages = append(q.Messages, messagesOf(m)...)
	}
	for _, t := range r.Tools {
		f := function{Name: t.Name, Description: t.Description, Parameters: wire.Object(t.Schema)}
		q.Tools = append(q.Tools, tool{Type: typeFunction, Function: f})
	}
	return q
}

// messagesOf makes the API's messages of one of ours: each result is one of its own, and
// they come before other words, as the API wants the results right behind their calls.
func messagesOf(m agent.Message) []message {
	if m.Role == agent.FromModel {
		return assistant(m)
	}
	var out []message
	var text []string
	for _, b := range m.Blocks {
		switch b.Type {
		case agent.AnswerBlock:
			answer := b.Text
			if b.IsError {
				answer = "Error: " + answer // the API has no mark of its own
			}
			out = append(out, message{Role: "tool", Content: &answer, ToolCallID: wire.CallID(b.ID)})
		case agent.TextBlock:
			if b.Text != "" {
				text = append(text, b.Text)
			}
		}
	}
	if len(text) > 0 {
		out = append(out, message{Role: "user", Content: new(strings.Join(text, "\n\n"))})
	}
	return out
}

// assistant makes the message of a model's turn; one without words or calls is left out.
func assistant(m agent.Message) []message {
	a := message{Role: "assistant"}
	if text := m.Text(); text != "" {
		a.Content = &text
	}
	for _, b := range m.Calls() {
		f := calledFunction{Name: b.Name, Arguments: string(wire.Object(b.Input))}
		a.ToolCalls = append(a.ToolCalls, toolCall{ID: wire.CallID(b.ID), Type: typeFunction, Function: f})
	}
	if a.Content == nil && len(a.ToolCalls) == 0 {
		return nil
	}
	return []message{a}
}
