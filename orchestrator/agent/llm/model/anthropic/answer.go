package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"
)

// The API's own types of blocks.
const (
	typeText       = "text"
	typeToolUse    = "tool_use"
	typeToolResult = "tool_result"
	typeThinking   = "thinking"
	typeRedacted   = "redacted_thinking"
)

// event is one event of the stream: the fields of all types, as far as we use them.
type event struct {
	Type    wire.Text   `json:"type"`
	Index   wire.Number `json:"index"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type      wire.Text       `json:"type"`
		ID        wire.Text       `json:"id"`
		Name      wire.Text       `json:"name"`
		Text      wire.Text       `json:"text"`
		Thinking  wire.Text       `json:"thinking"`
		Signature wire.Text       `json:"signature"`
		Data      wire.Text       `json:"data"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type        wire.Text `json:"type"`
		Text        wire.Text `json:"text"`
		Thinking    wire.Text `json:"thinking"`
		Signature   wire.Text `json:"signature"`
		PartialJSON wire.Text `json:"partial_json"`
		StopReason  wire.Text `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage are the figures of a call; its input does not hold what was or came to the cache.
type usage struct {
	Input        wire.Number `json:"input_tokens"`
	Output       wire.Number `json:"output_tokens"`
	CacheRead    wire.Number `json:"cache_read_input_tokens"`
	CacheWritten wire.Number `json:"cache_creation_input_tokens"`
}

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

type block struct {
	index                     int64
	kind, id, name, signature string
	text                      strings.Builder // of a text, of thinking, of a call's input
	whole                     string          // a call's input as it stood at the beginning
}

// event takes one event; an error means that the stream is none of the API's.
func (a *answer) event(e event) error {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.started = true
		a.tokens = wire.Tokens{Input: u.Input.N, Output: u.Output.N, CacheRead: u.CacheRead.N, CacheWritten: u.CacheWritten.N}
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
func (a *answer) usage(u usage) {
	if u.Output.Given {
		a.reported, a.tokens.Output = true, u.Output.N
	}
	for _, f := range []struct {
		n  int64
		to *int64
	}{{u.Input.N, &a.tokens.Input}, {u.CacheRead.N, &a.tokens.CacheRead}, {u.CacheWritten.N, &a.tokens.CacheWritten}} {
		if f.n != 0 {
			*f.to = f.n
		}
	}
}

func (a *answer) begin(e event) error {
	if len(a.blocks) >= wire.MaxBlocks || a.find(e.Index.N) != nil {
		return fmt.Errorf("block %d of the answer begins twice, or there are too many", e.Index.N)
	}
	c := e.ContentBlock
	b := &block{index: e.Index.N, kind: string(c.Type), signature: string(c.Signature)}
	a.blocks = append(a.blocks, b)
	switch b.kind {
	case typeText:
		a.write(b, agent.DeltaText, c.Text)
	case typeThinking:
		a.write(b, agent.DeltaThinking, c.Thinking)
	case typeRedacted:
		b.text.WriteString(string(c.Data))
	case typeToolUse:
		b.id, b.name = string(c.ID), string(c.Name)
		if string(c.Input) != "null" {
			b.whole = string(c.Input)
		}
		a.show(agent.Delta{Kind: agent.DeltaTool, Tool: b.name})
	}
	return nil
}

func (a *answer) part(e event) error {
	b := a.find(e.Index.N)
	if b == nil {
		return fmt.Errorf("a part of block %d came before its beginning", e.Index.N)
	}
	switch d := e.Delta; {
	case d.Type == "text_delta" && b.kind == typeText:
		a.write(b, agent.DeltaText, d.Text)
	case d.Type == "thinking_delta" && b.kind == typeThinking:
		a.write(b, agent.DeltaThinking, d.Thinking)
	case d.Type == "signature_delta" && b.kind == typeThinking:
		b.signature += string(d.Signature)
	case d.Type == "input_json_delta" && b.kind == typeToolUse && d.PartialJSON != "":
		a.write(b, agent.DeltaTool, d.PartialJSON)
	}
	return nil
}

// write adds to a block and shows it.
func (a *answer) write(b *block, kind string, text wire.Text) {
	b.text.WriteString(string(text))
	a.show(agent.Delta{Kind: kind, Tool: b.name, Text: string(text)})
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
			input := cmp.Or(b.text.String(), b.whole)
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
