package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

// params makes the SDK's request of r.
func (c *Client) params(r model.Request) (sdk.ChatCompletionNewParams, error) {
	p := sdk.ChatCompletionNewParams{Model: r.Model, StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)}}
	if r.MaxTokens > 0 {
		// OpenAI's newer models refuse max_tokens, most compatible servers know nothing else.
		if c.o.BaseURL == "" {
			p.MaxCompletionTokens = sdk.Int(r.MaxTokens)
		} else {
			p.MaxTokens = sdk.Int(r.MaxTokens)
		}
	}
	if r.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(r.System))
	}
	for _, m := range r.Messages {
		p.Messages = append(p.Messages, messagesOf(m)...)
	}
	for _, t := range r.Tools {
		var schema map[string]any
		if err := json.Unmarshal(wire.Object(t.Schema), &schema); err != nil {
			return p, &model.Error{Kind: model.Invalid, Provider: c.o.Provider, Message: fmt.Sprintf("the schema of tool %s cannot be read: %v", t.Name, err)}
		}
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: schema}
		if t.Description != "" {
			f.Description = sdk.String(t.Description)
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	return p, nil
}

// messagesOf makes the SDK's messages of one of ours: each result is one of its own, and
// they come before other words, as the API wants the results right behind their calls.
func messagesOf(m agent.Message) []sdk.ChatCompletionMessageParamUnion {
	if m.Role == agent.FromModel {
		return assistant(m)
	}
	var out []sdk.ChatCompletionMessageParamUnion
	var text []string
	for _, b := range m.Blocks {
		switch b.Type {
		case agent.AnswerBlock:
			answer := b.Text
			if b.IsError {
				answer = "Error: " + answer // the API has no mark of its own
			}
			out = append(out, sdk.ToolMessage(answer, wire.CallID(b.ID)))
		case agent.TextBlock:
			if b.Text != "" {
				text = append(text, b.Text)
			}
		}
	}
	if len(text) > 0 {
		out = append(out, sdk.UserMessage(strings.Join(text, "\n\n")))
	}
	return out
}

// assistant makes the message of a model's turn; one without words or calls is left out.
func assistant(m agent.Message) []sdk.ChatCompletionMessageParamUnion {
	var a sdk.ChatCompletionAssistantMessageParam
	if text := m.Text(); text != "" {
		a.Content.OfString = sdk.String(text)
	}
	for _, b := range m.Calls() {
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID:       wire.CallID(b.ID),
			Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: b.Name, Arguments: string(wire.Object(b.Input))},
		}})
	}
	if !a.Content.OfString.Valid() && len(a.ToolCalls) == 0 {
		return nil
	}
	return []sdk.ChatCompletionMessageParamUnion{{OfAssistant: &a}}
}
