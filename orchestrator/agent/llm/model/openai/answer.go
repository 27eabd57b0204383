package openai

import (
	"errors"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"

	sdk "github.com/openai/openai-go/v3"
)

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
func (a *answer) chunk(c sdk.ChatCompletionChunk) error {
	if c.JSON.Usage.Valid() {
		u := c.Usage
		cached := u.PromptTokensDetails.CachedTokens
		a.tokens = wire.Tokens{Input: u.PromptTokens - cached, CacheRead: cached, Output: u.CompletionTokens}
		a.reported = u.JSON.PromptTokens.Valid() && u.JSON.CompletionTokens.Valid()
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one was asked for
		}
		a.started = true
		if choice.Delta.Content != "" {
			a.text.WriteString(choice.Delta.Content)
			a.show(agent.Delta{Kind: agent.DeltaText, Text: choice.Delta.Content})
		}
		if choice.Delta.Refusal != "" {
			a.refusal.WriteString(choice.Delta.Refusal)
			a.show(agent.Delta{Kind: agent.DeltaText, Text: choice.Delta.Refusal})
		}
		for _, part := range choice.Delta.ToolCalls {
			if err := a.part(part); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	return nil
}

// part takes a part of a call. Servers give the id and the name with the first part
// only, or with each; some give no index, and then a new id begins a new call.
func (a *answer) part(p sdk.ChatCompletionChunkChoiceDeltaToolCall) error {
	var at *call
	for _, c := range a.calls {
		if c.index == p.Index && (p.ID == "" || c.id == "" || c.id == p.ID) {
			at = c
		}
	}
	if at == nil {
		if len(a.calls) >= wire.MaxBlocks {
			return errors.New("the answer has too many calls")
		}
		if p.Function.Name == "" && p.ID == "" {
			return fmt.Errorf("a part of call %d came before its beginning", p.Index)
		}
		at = &call{index: p.Index}
		a.calls = append(a.calls, at)
	}
	if at.id == "" {
		at.id = p.ID
	}
	if at.name == "" {
		at.name = p.Function.Name
	}
	at.arguments.WriteString(p.Function.Arguments)
	a.show(agent.Delta{Kind: agent.DeltaTool, Tool: at.name, Text: p.Function.Arguments})
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
