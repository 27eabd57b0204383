package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"
)

// request is the body of a call, as far as we use it.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int64     `json:"max_tokens"`
	System    []content `json:"system,omitempty"`
	Messages  []message `json:"messages"`
	Tools     []tool    `json:"tools,omitempty"`
	Stream    bool      `json:"stream"`
}

type message struct {
	Role    string    `json:"role"`
	Content []content `json:"content"`
}

// content is one block of a message: the fields of all types that we send.
type content struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	Content      []content       `json:"content,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	Thinking     *string         `json:"thinking,omitempty"` // thinking has one even when it is empty
	Signature    string          `json:"signature,omitempty"`
	Data         string          `json:"data,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

// cacheControl has the service keep all up to its block.
type cacheControl struct {
	Type string `json:"type"`
}

type tool struct {
	Name        string                     `json:"name"`
	Description string                     `json:"description,omitempty"`
	InputSchema map[string]json.RawMessage `json:"input_schema"`
}

func keep() *cacheControl { return &cacheControl{Type: "ephemeral"} }

// request makes the body of r.
func (c *Client) request(r model.Request) (request, error) {
	q := request{Model: r.Model, MaxTokens: r.MaxTokens, Messages: c.messages(r.Messages), Stream: true}
	q.MaxTokens = cmp.Or(max(q.MaxTokens, 0), defaultMaxTokens)
	if r.System != "" {
		// The mark has the service keep tools and instructions of a long conversation.
		q.System = []content{{Type: typeText, Text: r.System, CacheControl: keep()}}
	}
	for _, t := range r.Tools {
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(wire.Object(t.Schema), &schema); err != nil {
			return q, &model.Error{Kind: model.Invalid, Provider: c.o.Provider, Message: fmt.Sprintf("the schema of tool %s cannot be read: %v", t.Name, err)}
		}
		schema["type"] = json.RawMessage(`"object"`) // the API takes no other, and not none
		q.Tools = append(q.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: schema})
	}
	return q, nil
}

// messages makes the API's messages. It wants the two sides to take turns and the results
// of calls first, so neighbours of one side become one message.
func (c *Client) messages(all []agent.Message) []message {
	var out []message
	for _, m := range all {
		role := "user"
		if m.Role == agent.FromModel {
			role = "assistant"
		}
		blocks := c.blocks(m)
		if len(blocks) == 0 {
			continue // the API refuses an empty message
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, message{Role: role, Content: blocks})
	}
	for i := range out {
		slices.SortStableFunc(out[i].Content, func(a, b content) int { return rank(a) - rank(b) })
	}
	if n := len(out); n > 0 {
		last := &out[n-1].Content[len(out[n-1].Content)-1]
		if last.Type == typeText || last.Type == typeToolResult {
			last.CacheControl = keep()
		}
	}
	return out
}

// rank puts results before all else; only user messages have any.
func rank(b content) int {
	if b.Type == typeToolResult {
		return 0
	}
	return 1
}

// blocks makes the API's blocks of one message.
func (c *Client) blocks(m agent.Message) []content {
	var out []content
	for _, b := range m.Blocks {
		switch b.Type {
		case agent.TextBlock:
			if b.Text != "" {
				out = append(out, content{Type: typeText, Text: b.Text})
			}
		case agent.CallBlock:
			out = append(out, content{Type: typeToolUse, ID: wire.CallID(b.ID), Name: b.Name, Input: wire.Object(b.Input)})
		case agent.AnswerBlock:
			result := content{Type: typeToolResult, ToolUseID: wire.CallID(b.ID), IsError: b.IsError}
			if b.Text != "" {
				result.Content = []content{{Type: typeText, Text: b.Text}}
			}
			out = append(out, result)
		case agent.OpaqueBlock:
			if t, ok := readThought(b); ok && b.Provider == c.o.Provider {
				out = append(out, t.content())
			}
		}
	}
	return out
}

// thought is a block of thinking, as the API gives it and wants it back unchanged.
type thought struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

func readThought(b agent.Block) (t thought, ok bool) {
	err := json.Unmarshal(b.Opaque, &t)
	// The API refuses thinking that it did not sign.
	return t, err == nil && (t.Type == typeThinking && t.Signature != "" || t.Type == typeRedacted && t.Data != "")
}

func (t thought) content() content {
	if t.Type == typeRedacted {
		return content{Type: typeRedacted, Data: t.Data}
	}
	return content{Type: typeThinking, Thinking: &t.Thinking, Signature: t.Signature}
}
