package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

// The API's own types of blocks.
const (
	typeText     = "text"
	typeToolUse  = "tool_use"
	typeThinking = "thinking"
	typeRedacted = "redacted_thinking"
)

// answer gathers the events of one stream.
type answer struct {
	provider string
	show     func(agent.Delta)
	started  bool // message_start came
	ended    bool // message_stop came
	stop     string
	blocks   []*block // in the order of their beginnings

	tokens   wire.Tokens
	reported bool // the figures of the end came, too
}

// block is one block that is being written.
type block struct {
	index                     int64
	kind, id, name, signature string
	text                      strings.Builder // of a text, of thinking, of a call's input
	whole                     string          // a call's input as it stood at the beginning
}

// event takes one event; an error means that the stream is none of the API's.
func (a *answer) event(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.started = true
		a.tokens = wire.Tokens{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadInputTokens, CacheWritten: u.CacheCreationInputTokens}
	case "content_block_start":
		return a.begin(e)
	case "content_block_delta":
		return a.part(e)
	case "message_delta":
		a.stop = string(e.Delta.StopReason)
		a.usage(e.Usage)
	case "message_stop":
		if !a.started {
			return errors.New("the answer ended before it began")
		}
		a.ended = true
	}
	return nil // content_block_stop, and what the API will have one day
}

// usage takes the figures of message_delta, which are totals; the input's may be missing.
func (a *answer) usage(u sdk.MessageDeltaUsage) {
	if u.JSON.OutputTokens.Valid() {
		a.reported, a.tokens.Output = true, u.OutputTokens
	}
	for _, f := range []struct {
		n  int64
		to *int64
	}{{u.InputTokens, &a.tokens.Input}, {u.CacheReadInputTokens, &a.tokens.CacheRead}, {u.CacheCreationInputTokens, &a.tokens.CacheWritten}} {
		if f.n != 0 {
			*f.to = f.n
		}
	}
}

func (a *answer) begin(e sdk.MessageStreamEventUnion) error {
	if len(a.blocks) >= wire.MaxBlocks || a.find(e.Index) != nil {
		return fmt.Errorf("block %d of the answer begins twice, or there are too many", e.Index)
	}
	c := e.ContentBlock
	b := &block{index: e.Index, kind: c.Type, id: c.ID, name: c.Name, signature: c.Signature}
	a.blocks = append(a.blocks, b)
	switch c.Type {
	case typeText:
		b.text.WriteString(c.Text)
		a.show(agent.Delta{Kind: agent.DeltaText, Text: c.Text})
	case typeThinking:
		b.text.WriteString(c.Thinking)
		a.show(agent.Delta{Kind: agent.DeltaThinking, Text: c.Thinking})
	case typeRedacted:
		b.text.WriteString(c.Data)
	case typeToolUse:
		if raw := c.JSON.Input.Raw(); raw != "null" {
			b.whole = raw
		}
		a.show(agent.Delta{Kind: agent.DeltaTool, Tool: c.Name})
	}
	return nil
}

func (a *answer) part(e sdk.MessageStreamEventUnion) error {
	b := a.find(e.Index)
	if b == nil {
		return fmt.Errorf("a part of block %d came before its beginning", e.Index)
	}
	switch d := e.Delta; {
	case d.Type == "text_delta" && b.kind == typeText:
		b.text.WriteString(d.Text)
		a.show(agent.Delta{Kind: agent.DeltaText, Text: d.Text})
	case d.Type == "thinking_delta" && b.kind == typeThinking:
		b.text.WriteString(d.Thinking)
		a.show(agent.Delta{Kind: agent.DeltaThinking, Text: d.Thinking})
	case d.Type == "signature_delta" && b.kind == typeThinking:
		b.signature += d.Signature
	case d.Type == "input_json_delta" && b.kind == typeToolUse && d.PartialJSON != "":
		b.text.WriteString(d.PartialJSON)
		a.show(agent.Delta{Kind: agent.DeltaTool, Tool: b.name, Text: d.PartialJSON})
	}
	return nil
}

func (a *answer) find(index int64) *block {
	if i := slices.IndexFunc(a.blocks, func(b *block) bool { return b.index == index }); i >= 0 {
		return a.blocks[i]
	}
	return nil
}

// response is the whole of what came.
func (a *answer) response(name string) model.Response {
	r := model.Response{Message: agent.Message{Role: agent.FromModel}, Model: a.provider + "/" + name}
	for _, b := range a.blocks {
		switch b.kind {
		case typeText:
			if b.text.Len() > 0 {
				r.Message.Blocks = append(r.Message.Blocks, agent.Block{Type: agent.TextBlock, Text: b.text.String()})
			}
		case typeToolUse:
			input := b.text.String()
			if input == "" {
				input = b.whole
			}
			r.Message.Blocks = append(r.Message.Blocks, wire.Call(b.id, b.name, input))
		case typeThinking, typeRedacted:
			r.Message.Blocks = append(r.Message.Blocks, a.opaque(b))
		}
	}
	r.Stop = wire.Stop(stopOf(a.stop), r.Message)
	a.tokens.Count(&r, a.reported)
	return r
}

// opaque keeps thinking as the API wants it back.
func (a *answer) opaque(b *block) agent.Block {
	t := thought{Type: b.kind, Thinking: b.text.String(), Signature: b.signature}
	if b.kind == typeRedacted {
		t = thought{Type: b.kind, Data: b.text.String()}
	}
	raw, err := json.Marshal(t)
	if err != nil {
		raw = json.RawMessage("{}") // strings always marshal
	}
	return agent.Block{Type: agent.OpaqueBlock, Provider: a.provider, Opaque: raw}
}

// stopOf maps the API's reasons.
func stopOf(reason string) string {
	switch reason {
	case "tool_use":
		return model.StopTools
	case "max_tokens", "model_context_window_exceeded":
		return model.StopMaxTokens
	case "refusal":
		return model.StopRefusal
	default: // end_turn, stop_sequence, pause_turn
		return model.StopEnd
	}
}
