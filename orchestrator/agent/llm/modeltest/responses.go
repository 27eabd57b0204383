package modeltest

import (
	"encoding/json"
	"fmt"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// responsesAPI is OpenAI's Responses API, which Codex speaks.
type responsesAPI struct{}

func (responsesAPI) name() string { return Responses }

func (responsesAPI) read(body []byte) (Ask, error) {
	var q struct {
		Model        string          `json:"model"`
		Instructions string          `json:"instructions"`
		Stream       bool            `json:"stream"`
		Input        json.RawMessage `json:"input"`
		Tools        []struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return Ask{}, err
	}
	a := Ask{Model: q.Model, System: q.Instructions, Stream: q.Stream}
	for _, t := range q.Tools {
		if t.Name != "" { // the others are the service's own
			a.Tools = append(a.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Parameters})
		}
	}
	var text string
	if json.Unmarshal(q.Input, &text) == nil {
		a.Messages = []agent.Message{{Role: agent.FromUser, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}}
		return a, nil
	}
	var items []responsesItem
	if err := json.Unmarshal(q.Input, &items); err != nil {
		return Ask{}, fmt.Errorf("input: %w", err)
	}
	for _, it := range items {
		it.into(&a)
	}
	return a, nil
}

// responsesItem is one item of the input.
type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Name      string          `json:"name"`
	CallID    string          `json:"call_id"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
}

// into adds the item to the messages; neighbours of one side are one message.
func (it responsesItem) into(a *Ask) {
	role, block := "", agent.Block{}
	switch it.Type {
	case "", "message":
		text := words(it.Content)
		if it.Role == "system" || it.Role == "developer" {
			a.System += text
			return
		}
		role, block = it.Role, agent.Block{Type: agent.TextBlock, Text: text}
	case "function_call":
		role, block = agent.FromModel, agent.Block{Type: agent.CallBlock, ID: it.CallID, Name: it.Name, Input: json.RawMessage(it.Arguments)}
	case "custom_tool_call":
		role, block = agent.FromModel, agent.Block{Type: agent.CallBlock, ID: it.CallID, Name: it.Name, Text: it.Input}
	case "function_call_output", "custom_tool_call_output":
		role, block = agent.FromTools, agent.Block{Type: agent.AnswerBlock, ID: it.CallID, Text: words(it.Output)}
	default:
		return // reasoning and the service's own
	}
	if n := len(a.Messages); n > 0 && a.Messages[n-1].Role == role && role != agent.FromUser {
		a.Messages[n-1].Blocks = append(a.Messages[n-1].Blocks, block)
		return
	}
	a.Messages = append(a.Messages, agent.Message{Role: role, Blocks: []agent.Block{block}})
}

// items are the answer's items, whole.
func (responsesAPI) items(r reply) []map[string]any {
	var out []map[string]any
	if r.Text != "" {
		out = append(out, map[string]any{"type": "message", "id": "item_" + r.id, "status": "completed", "role": "assistant",
			"content": []any{map[string]any{"type": "output_text", "text": r.Text, "annotations": []any{}}}})
	}
	for i, c := range r.Calls {
		out = append(out, map[string]any{"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", r.id, i), "status": "completed", "call_id": c.ID, "name": c.Name, "arguments": c.Text})
	}
	return out
}

// response is the answer's frame with these items.
func (responsesAPI) response(a Ask, r reply, status string, items []map[string]any) map[string]any {
	if items == nil {
		items = []map[string]any{}
	}
	out := map[string]any{"id": "resp_" + r.id, "object": "response", "created_at": 1700000000, "status": status, "model": a.Model, "output": items, "error": nil, "incomplete_details": nil}
	if status != "in_progress" && !r.NoUsage {
		input := r.usage.Input + r.usage.CacheRead + r.usage.CacheWritten
		out["usage"] = map[string]any{"input_tokens": input, "input_tokens_details": map[string]any{"cached_tokens": r.usage.CacheRead},
			"output_tokens": r.usage.Output, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": input + r.usage.Output}
	}
	if status == "incomplete" {
		out["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	}
	return out
}

func (f responsesAPI) events(a Ask, r reply) []frame {
	var out []frame
	add := func(typ string, v map[string]any) {
		v["type"], v["sequence_number"] = typ, len(out)
		out = append(out, event(typ, v))
	}
	add("response.created", map[string]any{"response": f.response(a, r, "in_progress", nil)})
	add("response.in_progress", map[string]any{"response": f.response(a, r, "in_progress", nil)})
	items := f.items(r)
	for i, item := range items {
		begun := map[string]any{}
		for k, v := range item {
			begun[k] = v
		}
		begun["status"] = "in_progress"
		id := item["id"]
		if item["type"] == "message" {
			begun["content"] = []any{}
			add("response.output_item.added", map[string]any{"output_index": i, "item": begun})
			at := func(v map[string]any) map[string]any {
				v["item_id"], v["output_index"], v["content_index"] = id, i, 0
				return v
			}
			add("response.content_part.added", at(map[string]any{"part": map[string]any{"type": "output_text", "text": "", "annotations": []any{}}}))
			for _, p := range parts(r.Text) {
				add("response.output_text.delta", at(map[string]any{"delta": p, "logprobs": []any{}}))
			}
			add("response.output_text.done", at(map[string]any{"text": r.Text, "logprobs": []any{}}))
			add("response.content_part.done", at(map[string]any{"part": map[string]any{"type": "output_text", "text": r.Text, "annotations": []any{}}}))
		} else {
			begun["arguments"] = ""
			add("response.output_item.added", map[string]any{"output_index": i, "item": begun})
			arguments, _ := item["arguments"].(string)
			for _, p := range parts(arguments) {
				add("response.function_call_arguments.delta", map[string]any{"item_id": id, "output_index": i, "delta": p})
			}
			add("response.function_call_arguments.done", map[string]any{"item_id": id, "output_index": i, "arguments": arguments})
		}
		add("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	status := responsesStatus(r.Stop)
	add("response."+status, map[string]any{"response": f.response(a, r, status, items)})
	return out
}

func (f responsesAPI) whole(a Ask, r reply) any {
	return f.response(a, r, responsesStatus(r.Stop), f.items(r))
}

func responsesStatus(stop string) string {
	if stop == model.StopMaxTokens {
		return "incomplete"
	}
	return "completed"
}
