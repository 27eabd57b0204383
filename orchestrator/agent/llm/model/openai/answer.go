package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"
)

// chunk is one event of the stream, as far as we use it.
type chunk struct {
	Error   json.RawMessage `json:"error"` // the answer failed, whatever it holds
	Choices []struct {
		Index wire.Number `json:"index"`
		Delta struct {
			Content   wire.Text `json:"content"`
			Refusal   wire.Text `json:"refusal"`
			ToolCalls []part    `json:"tool_calls"`
		} `json:"delta"`
		FinishReason wire.Text `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens        wire.Number `json:"prompt_tokens"`
		CompletionTokens    wire.Number `json:"completion_tokens"`
		PromptTokensDetails struct {
			CachedTokens wire.Number `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

type part struct {
	Index    wire.Number `json:"index"`
	ID       wire.Text   `json:"id"`
	Function struct {
		Name      wire.Text `json:"name"`
		Arguments wire.Text `json:"arguments"`
	} `json:"function"`
}

// answer gathers the chunks of one stream.
type answer struct {
	provider string
	show     func(agent.Delta)
	started  bool
	finish   string // the reason, "" until it came
	text     strings.Builder
	refusal  strings.Builder
	calls    []*call // in the order of their beginnings

	tokens   wire.Tokens
	reported bool
}

// call is one call that is being written.
type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// chunk takes one chunk; an error means that the stream is none of the API's.
func (a *answer) chunk(c chunk) error {
	if u := c.Usage; u != nil {
		cached := u.PromptTokensDetails.CachedTokens.N
		a.tokens = wire.Tokens{Input: u.PromptTokens.N - cached, CacheRead: cached, Output: u.CompletionTokens.N}
		a.reported = u.PromptTokens.Given && u.CompletionTokens.Given
	}
	for _, choice := range c.Choices {
		if choice.Index.N != 0 {
			continue // one was asked for
		}
		a.started = true
		if said := string(choice.Delta.Content); said != "" {
			a.text.WriteString(said)
			a.show(agent.Delta{Kind: agent.DeltaText, Text: said})
		}
		if said := string(choice.Delta.Refusal); said != "" {
			a.refusal.WriteString(said)
			a.show(agent.Delta{Kind: agent.DeltaText, Text: said})
		}
		for _, p := range choice.Delta.ToolCalls {
			if err := a.part(p); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			a.finish = string(choice.FinishReason)
		}
	}
	return nil
}

// part takes a part of a call. Servers give the id and the name with the first part
// only, or with each; some give no index, and then a new id begins a new call.
func (a *answer) part(p part) error {
	index, id, name, arguments := p.Index.N, string(p.ID), string(p.Function.Name), string(p.Function.Arguments)
	var at *call
	for _, c := range a.calls {
		if c.index == index && (id == "" || c.id == "" || c.id == id) {
			at = c
		}
	}
	if at == nil {
		if len(a.calls) >= wire.MaxBlocks {
			return errors.New("the answer has too many calls")
		}
		if name == "" && id == "" {
			return fmt.Errorf("a part of call %d came before its beginning", index)
		}
		at = &call{index: index}
		a.calls = append(a.calls, at)
	}
	at.id = cmp.Or(at.id, id)
	at.name = cmp.Or(at.name, name)
	at.arguments.WriteString(arguments)
	a.show(agent.Delta{Kind: agent.DeltaTool, Tool: at.name, Text: arguments})
	return nil
}

// response is the whole of what came.
func (a *answer) response(name string) model.Response {
	r := model.Response{Message: agent.Message{Role: agent.FromModel}, Model: a.provider + "/" + name}
	for _, text := range []string{a.text.String(), a.refusal.String()} {
		if text != "" {
			r.Message.Blocks = append(r.Message.Blocks, agent.Block{Type: agent.TextBlock, Text: text})
		}
	}
	for _, c := range a.calls {
		r.Message.Blocks = append(r.Message.Blocks, wire.Call(c.id, c.name, c.arguments.String()))
	}
	r.Stop = wire.Stop(stopOf(a.finish), r.Message)
	if a.refusal.Len() > 0 {
		r.Stop = model.StopRefusal
	}
	a.tokens.Count(&r, a.reported)
	return r
}

// stopOf maps the API's reasons.
func stopOf(reason string) string {
	switch reason {
	case "tool_calls", "function_call":
		return model.StopTools
	case "length":
		return model.StopMaxTokens
	case "content_filter":
		return model.StopRefusal
	default:
		return model.StopEnd
	}
}
