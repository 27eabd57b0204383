package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/wire"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

// params makes the SDK's request of r.
func (c *Client) params(r model.Request) (sdk.MessageNewParams, error) {
	p := sdk.MessageNewParams{Model: sdk.Model(r.Model), MaxTokens: r.MaxTokens, Messages: c.messages(r.Messages)}
	if p.MaxTokens <= 0 {
		p.MaxTokens = defaultMaxTokens
	}
	if r.System != "" {
		// The mark has the service keep tools and instructions of a long conversation.
		p.System = []sdk.TextBlockParam{{Text: r.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	for _, t := range r.Tools {
		tool, err := toolOf(t)
		if err != nil {
			return p, &model.Error{Kind: model.Invalid, Provider: c.o.Provider, Message: err.Error()}
		}
		p.Tools = append(p.Tools, tool)
	}
	return p, nil
}

// toolOf makes the SDK's tool of t.
func toolOf(t model.Tool) (sdk.ToolUnionParam, error) {
	var fields map[string]any
	if err := json.Unmarshal(wire.Object(t.Schema), &fields); err != nil {
		return sdk.ToolUnionParam{}, fmt.Errorf("the schema of tool %s cannot be read: %w", t.Name, err)
	}
	schema := sdk.ToolInputSchemaParam{Properties: fields["properties"], ExtraFields: map[string]any{}}
	for name, v := range fields {
		if name != "type" && name != "properties" {
			schema.ExtraFields[name] = v
		}
	}
	tool := sdk.ToolParam{Name: t.Name, InputSchema: schema}
	if t.Description != "" {
		tool.Description = sdk.String(t.Description)
	}
	return sdk.ToolUnionParam{OfTool: &tool}, nil
}

// messages makes the SDK's messages. The API wants the two sides to take turns and the
// results of calls first, so neighbours of one side become one message.
func (c *Client) messages(all []agent.Message) []sdk.MessageParam {
	var out []sdk.MessageParam
	for _, m := range all {
		role := sdk.MessageParamRoleUser
		if m.Role == agent.FromModel {
			role = sdk.MessageParamRoleAssistant
		}
		blocks := c.blocks(m)
		if len(blocks) == 0 {
			continue // the API refuses an empty message
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	for i := range out {
		slices.SortStableFunc(out[i].Content, func(a, b sdk.ContentBlockParamUnion) int { return rank(a) - rank(b) })
	}
	if n := len(out); n > 0 {
		last := &out[n-1].Content[len(out[n-1].Content)-1]
		switch {
		case last.OfText != nil:
			last.OfText.CacheControl = sdk.NewCacheControlEphemeralParam()
		case last.OfToolResult != nil:
			last.OfToolResult.CacheControl = sdk.NewCacheControlEphemeralParam()
		}
	}
	return out
}

// rank puts results before all else; only user messages have any.
func rank(b sdk.ContentBlockParamUnion) int {
	if b.OfToolResult != nil {
		return 0
	}
	return 1
}

// blocks makes the SDK's blocks of one message.
func (c *Client) blocks(m agent.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, b := range m.Blocks {
		switch b.Type {
		case agent.TextBlock:
			if b.Text != "" {
				out = append(out, sdk.NewTextBlock(b.Text))
			}
		case agent.CallBlock:
			out = append(out, sdk.NewToolUseBlock(wire.CallID(b.ID), wire.Object(b.Input), b.Name))
		case agent.AnswerBlock:
			result := sdk.ToolResultBlockParam{ToolUseID: wire.CallID(b.ID), IsError: sdk.Bool(b.IsError)}
			if b.Text != "" {
				result.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: b.Text}}}
			}
			out = append(out, sdk.ContentBlockParamUnion{OfToolResult: &result})
		case agent.OpaqueBlock:
			if t, ok := readThought(b); ok && b.Provider == c.o.Provider {
				out = append(out, t.param())
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

func (t thought) param() sdk.ContentBlockParamUnion {
	if t.Type == typeRedacted {
		return sdk.NewRedactedThinkingBlock(t.Data)
	}
	return sdk.NewThinkingBlock(t.Signature, t.Thinking)
}
