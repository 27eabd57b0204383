package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// messagesAPI is Anthropic's Messages API.
type messagesAPI struct{}

func (messagesAPI) name() string { return Messages }

// messagesBlock is one block of a request.
type messagesBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
}

func (messagesAPI) read(body []byte) (Ask, error) {
	var q struct {
		Model     string          `json:"model"`
		MaxTokens int64           `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Stream    bool            `json:"stream"`
		Messages  []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return Ask{}, err
	}
	if q.MaxTokens <= 0 {
		return Ask{}, errors.New("max_tokens: Field required")
	}
	a := Ask{Model: q.Model, System: words(q.System), Stream: q.Stream}
	for i, m := range q.Messages {
		message, err := messageOf(m.Role, m.Content)
		if err != nil {
			return Ask{}, fmt.Errorf("messages.%d: %w", i, err)
		}
		a.Messages = append(a.Messages, message)
	}
	for _, t := range q.Tools {
		a.Tools = append(a.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return a, nil
}

// messageOf reads one message; one with results is FromTools.
func messageOf(role string, content json.RawMessage) (agent.Message, error) {
	m := agent.Message{Role: role}
	var text string
	if json.Unmarshal(content, &text) == nil {
		m.Blocks = []agent.Block{{Type: agent.TextBlock, Text: text}}
		return m, nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(content, &raw); err != nil {
		return m, err
	}
	if len(raw) == 0 {
		return m, errors.New("all messages must have non-empty content")
	}
	for _, r := range raw {
		var b messagesBlock
		if err := json.Unmarshal(r, &b); err != nil {
			return m, err
		}
		switch b.Type {
		case "text":
			if b.Text == "" {
				return m, errors.New("text content blocks must be non-empty")
			}
			m.Blocks = append(m.Blocks, agent.Block{Type: agent.TextBlock, Text: b.Text})
		case "tool_use":
			if b.ID == "" || len(b.Input) == 0 || b.Input[0] != '{' {
				return m, errors.New("tool_use.input: Input should be a valid dictionary")
			}
			m.Blocks = append(m.Blocks, agent.Block{Type: agent.CallBlock, ID: b.ID, Name: b.Name, Input: b.Input})
		case "tool_result":
			m.Role = agent.FromTools
			m.Blocks = append(m.Blocks, agent.Block{Type: agent.AnswerBlock, ID: b.ToolUseID, Text: words(b.Content), IsError: b.IsError})
		case "thinking", "redacted_thinking":
			if b.Signature == "" && b.Data == "" {
				return m, errors.New("thinking.signature: Field required")
			}
			m.Blocks = append(m.Blocks, agent.Block{Type: agent.OpaqueBlock, Provider: Messages, Opaque: r})
		}
	}
	return m, nil
}

// signature is what the service signs thinking with.
const signature = "c2lnbmVkIGJ5IHRoZSBmYWtl"

func (messagesAPI) usage(r reply) map[string]any {
	return map[string]any{"input_tokens": r.usage.Input, "output_tokens": r.usage.Output,
		"cache_read_input_tokens": r.usage.CacheRead, "cache_creation_input_tokens": r.usage.CacheWritten}
}

func (f messagesAPI) events(a Ask, r reply) []frame {
	message := map[string]any{"id": r.id, "type": "message", "role": "assistant", "model": a.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil}
	if !r.NoUsage {
		u := f.usage(r)
		u["output_tokens"] = 1
		message["usage"] = u
	}
	out := []frame{event("message_start", map[string]any{"type": "message_start", "message": message})}
	index := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		out = append(out, event("content_block_start", map[string]any{"type": "content_block_start", "index": index, "content_block": start}))
		for _, d := range deltas {
			out = append(out, event("content_block_delta", map[string]any{"type": "content_block_delta", "index": index, "delta": d}))
		}
		out = append(out, event("content_block_stop", map[string]any{"type": "content_block_stop", "index": index}))
		index++
	}
	if r.Think != "" {
		deltas := deltasOf("thinking_delta", "thinking", r.Think)
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, append(deltas, map[string]any{"type": "signature_delta", "signature": signature})...)
	}
	if r.Text != "" {
		block(map[string]any{"type": "text", "text": ""}, deltasOf("text_delta", "text", r.Text)...)
	}
	for _, c := range r.Calls {
		deltas := append([]map[string]any{{"type": "input_json_delta", "partial_json": ""}}, deltasOf("input_json_delta", "partial_json", c.Text)...)
		block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}, deltas...)
	}
	end := map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": messagesStop(r.Stop), "stop_sequence": nil}}
	if !r.NoUsage {
		end["usage"] = map[string]any{"output_tokens": r.usage.Output}
	}
	return append(out, event("message_delta", end), event("message_stop", map[string]any{"type": "message_stop"}))
}

func deltasOf(typ, field, text string) []map[string]any {
	var out []map[string]any
	for _, p := range parts(text) {
		out = append(out, map[string]any{"type": typ, field: p})
	}
	return out
}

func (f messagesAPI) whole(a Ask, r reply) any {
	content := []any{}
	if r.Think != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.Think, "signature": signature})
	}
	if r.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": r.Text})
	}
	for _, c := range r.Calls {
		input := json.RawMessage("{}")
		if json.Valid([]byte(c.Text)) {
			input = json.RawMessage(c.Text)
		}
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": input})
	}
	out := map[string]any{"id": r.id, "type": "message", "role": "assistant", "model": a.Model, "content": content,
		"stop_reason": messagesStop(r.Stop), "stop_sequence": nil}
	if !r.NoUsage {
		out["usage"] = f.usage(r)
	}
	return out
}

func messagesStop(stop string) string {
	if stop == model.StopEnd {
		return "end_turn"
	}
	return stop // the others are the API's own words
}
