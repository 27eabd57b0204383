package modeltest

import (
	"encoding/json"
	"fmt"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// chatAPI is OpenAI's Chat Completions.
type chatAPI struct{}

func (chatAPI) name() string { return Chat }

// chatCall is a call in a request or an answer.
type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (chatAPI) read(body []byte) (Ask, error) {
	var q struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCalls  []chatCall      `json:"tool_calls"`
			ToolCallID string          `json:"tool_call_id"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return Ask{}, err
	}
	a := Ask{Model: q.Model, Stream: q.Stream}
	for i, m := range q.Messages {
		text := words(m.Content)
		switch m.Role {
		case "system", "developer":
			a.System += text
		case "tool":
			result := agent.Block{Type: agent.AnswerBlock, ID: m.ToolCallID, Text: text}
			if n := len(a.Messages); n > 0 && a.Messages[n-1].Role == agent.FromTools {
				a.Messages[n-1].Blocks = append(a.Messages[n-1].Blocks, result)
			} else {
				a.Messages = append(a.Messages, agent.Message{Role: agent.FromTools, Blocks: []agent.Block{result}})
			}
		case "user", "assistant":
			message := agent.Message{Role: m.Role}
			if text != "" {
				message.Blocks = []agent.Block{{Type: agent.TextBlock, Text: text}}
			}
			for _, c := range m.ToolCalls {
				message.Blocks = append(message.Blocks, agent.Block{Type: agent.CallBlock, ID: c.ID, Name: c.Function.Name, Input: json.RawMessage(c.Function.Arguments)})
			}
			a.Messages = append(a.Messages, message)
		default:
			return Ask{}, fmt.Errorf("invalid value for 'messages[%d].role': %q", i, m.Role)
		}
	}
	for _, t := range q.Tools {
		a.Tools = append(a.Tools, model.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	return a, nil
}

func (chatAPI) events(a Ask, r reply) []frame {
	chunk := func(choices []any, more map[string]any) frame {
		c := map[string]any{"id": "chat" + r.id, "object": "chat.completion.chunk", "created": 1700000000, "model": a.Model, "choices": choices}
		for k, v := range more {
			c[k] = v
		}
		return event("", c)
	}
	delta := func(d map[string]any) frame {
		return chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil)
	}
	out := []frame{delta(map[string]any{"role": "assistant", "content": nil})}
	for _, p := range parts(r.Text) {
		out = append(out, delta(map[string]any{"content": p}))
	}
	for i, c := range r.Calls {
		first := map[string]any{"index": i, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}
		if !c.NoID {
			first["id"] = c.ID
		}
		out = append(out, delta(map[string]any{"tool_calls": []any{first}}))
		for _, p := range parts(c.Text) {
			out = append(out, delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": p}}}}))
		}
	}
	out = append(out, chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": chatStop(r.Stop)}}, nil))
	if !r.NoUsage {
		out = append(out, chunk([]any{}, map[string]any{"usage": chatUsage(r)}))
	}
	return append(out, frame{data: "[DONE]"})
}

func (chatAPI) whole(a Ask, r reply) any {
	message := map[string]any{"role": "assistant", "content": nil}
	if r.Text != "" {
		message["content"] = r.Text
	}
	var calls []any
	for _, c := range r.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Text}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	out := map[string]any{"id": "chat" + r.id, "object": "chat.completion", "created": 1700000000, "model": a.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": chatStop(r.Stop)}}}
	if !r.NoUsage {
		out["usage"] = chatUsage(r)
	}
	return out
}

// chatUsage counts cached input within the prompt's, as the API does.
func chatUsage(r reply) map[string]any {
	input := r.usage.Input + r.usage.CacheRead + r.usage.CacheWritten
	return map[string]any{"prompt_tokens": input, "completion_tokens": r.usage.Output, "total_tokens": input + r.usage.Output,
		"prompt_tokens_details": map[string]any{"cached_tokens": r.usage.CacheRead}}
}

func chatStop(stop string) string {
	switch stop {
	case model.StopTools:
		return "tool_calls"
	case model.StopMaxTokens:
		return "length"
	case model.StopRefusal:
		return "content_filter"
	default:
		return "stop"
	}
}
