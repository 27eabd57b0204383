package judge

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/modeltest"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	openai "github.com/openai/openai-go/v3"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func said(role, text string) agent.Message {
	return agent.Message{Role: role, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}
}

// long is a conversation with all that one may have.
func long(kind string) model.Request {
	thought := json.RawMessage(`{"type":"thinking","thinking":"","signature":"c2ln"}`)
	hidden := json.RawMessage(`{"type":"redacted_thinking","thinking":"","data":"ZGF0YQ=="}`)
	return model.Request{Model: "m", System: "You plan <&>.", MaxTokens: 77, Messages: []agent.Message{
		said(agent.FromUser, "Go \"on\" \u2028."),
		{Role: agent.FromModel, Blocks: []agent.Block{
			{Type: agent.OpaqueBlock, Provider: kind, Opaque: thought}, {Type: agent.OpaqueBlock, Provider: kind, Opaque: hidden},
			{Type: agent.TextBlock, Text: "Two calls."},
			{Type: agent.CallBlock, ID: "call_1", Name: "f", Input: json.RawMessage(`{"a":[1,{"b":"<&>"}]}`)},
			{Type: agent.CallBlock, ID: "call_2", Name: "g", Input: json.RawMessage(`{}`)},
		}},
		{Role: agent.FromTools, Blocks: []agent.Block{
			{Type: agent.AnswerBlock, ID: "call_1", Text: "done"}, {Type: agent.AnswerBlock, ID: "call_2", IsError: true, Text: "no"},
		}},
		said(agent.FromUser, "And now?"),
		{Role: agent.FromModel, Blocks: []agent.Block{{Type: agent.CallBlock, ID: "call_3", Name: "f", Input: json.RawMessage(`{}`)}}},
		{Role: agent.FromTools, Blocks: []agent.Block{{Type: agent.AnswerBlock, ID: "call_3"}}},
	}, Tools: []model.Tool{
		{Name: "f", Description: "Does it", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","maxItems":9}},"required":["a"],"additionalProperties":false}`)},
		{Name: "g", Schema: json.RawMessage(`{"properties":{}}`)},
	}}
}

// sent makes a call and returns what the service got.
func sent(t *testing.T, kind string) *tap {
	t.Helper()
	s := modeltest.Start(func(modeltest.Ask) modeltest.Answer { return modeltest.Say("fine") })
	defer s.Close()
	p := newTap(t)
	if out := ours(t, kind, base(kind, s), p, long(kind)); out.text != "fine" {
		t.Fatalf("the service refused: %d %s", out.status, p.answers)
	}
	return p
}

// again is what the SDK writes of what it has read. It leaves out what it does not know.
func again(t *testing.T, body []byte, into any) map[string]any {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	return fields(t, raw)
}

func fields(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Nothing that the program sends is unknown to the SDK or of another shape, and all of a
// conversation arrives.
func TestOurMessagesAreTheirs(t *testing.T) {
	p := sent(t, "anthropic")
	var q anthropic.MessageNewParams
	got, want := fields(t, p.body), again(t, p.body, &q)
	if got["stream"] != true {
		t.Error("no stream is asked for")
	}
	delete(got, "stream") // the SDK sets it beside its parameters
	if !reflect.DeepEqual(got, want) {
		t.Errorf("we sent  %v\nthey send %v", got, want)
	}
	roles := []string{}
	for _, m := range q.Messages {
		roles = append(roles, string(m.Role))
	}
	if strings.Join(roles, " ") != "user assistant user assistant user" || q.MaxTokens != 77 || q.System[0].Text != "You plan <&>." || q.System[0].CacheControl.Type != "ephemeral" {
		t.Fatalf("the conversation is %v, %+v", roles, q)
	}
	turn, results := q.Messages[1].Content, q.Messages[2].Content
	if len(turn) != 5 || turn[0].OfThinking == nil || turn[0].OfThinking.Signature != "c2ln" || turn[1].OfRedactedThinking == nil || turn[1].OfRedactedThinking.Data != "ZGF0YQ==" ||
		turn[2].OfText.Text != "Two calls." || turn[3].OfToolUse.ID != "call_1" || turn[4].OfToolUse.Name != "g" {
		t.Errorf("the turn is %+v", turn)
	}
	if len(results) != 3 || results[0].OfToolResult.Content[0].OfText.Text != "done" || !results[1].OfToolResult.IsError.Value || results[2].OfText.Text != "And now?" {
		t.Errorf("the results are %+v", results)
	}
	if last := q.Messages[4].Content[0].OfToolResult; last.ToolUseID != "call_3" || len(last.Content) != 0 || last.CacheControl.Type != "ephemeral" {
		t.Errorf("the last result is %+v", last)
	}
	if f := q.Tools[0].OfTool; f.Description.Value != "Does it" || !slices.Equal(f.InputSchema.Required, []string{"a"}) || f.InputSchema.ExtraFields["additionalProperties"] != false {
		t.Errorf("the tool is %+v", f)
	}
	if s := got["tools"].([]any)[1].(map[string]any)["input_schema"].(map[string]any); s["type"] != "object" {
		t.Errorf("a schema without a type goes as %v", s)
	}
}

func TestOurChatIsTheirs(t *testing.T) {
	p := sent(t, "openai")
	var q openai.ChatCompletionNewParams
	got, want := fields(t, p.body), again(t, p.body, &q)
	if got["stream"] != true {
		t.Error("no stream is asked for")
	}
	delete(got, "stream")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("we sent  %v\nthey send %v", got, want)
	}
	m := q.Messages
	if len(m) != 8 || !q.StreamOptions.IncludeUsage.Value || q.MaxTokens.Value != 77 {
		t.Fatalf("the conversation is %s", p.body)
	}
	if m[0].OfSystem.Content.OfString.Value != "You plan <&>." || m[1].OfUser.Content.OfString.Value != "Go \"on\" \u2028." || m[2].OfAssistant.Content.OfString.Value != "Two calls." {
		t.Errorf("the words are %s", p.body)
	}
	if c := m[2].OfAssistant.ToolCalls; len(c) != 2 || c[0].OfFunction.ID != "call_1" || c[0].OfFunction.Function.Arguments != `{"a":[1,{"b":"<&>"}]}` {
		t.Errorf("the calls are %+v", c)
	}
	if m[3].OfTool.ToolCallID != "call_1" || m[3].OfTool.Content.OfString.Value != "done" || m[4].OfTool.Content.OfString.Value != "Error: no" || m[5].OfUser == nil ||
		m[6].OfAssistant.Content.OfString.Valid() || !m[7].OfTool.Content.OfString.Valid() || m[7].OfTool.Content.OfString.Value != "" {
		t.Errorf("the results are %s", p.body)
	}
	if f := q.Tools[0].OfFunction.Function; f.Description.Value != "Does it" || f.Parameters["additionalProperties"] != false {
		t.Errorf("the tool is %+v", f)
	}
}

// Both go to the same place with the same headers, but for who they say they are.
func TestOurHeadersAreTheirs(t *testing.T) {
	for _, kind := range []string{"anthropic", "openai"} {
		s := modeltest.Start(func(modeltest.Ask) modeltest.Answer { return modeltest.Say("fine") })
		defer s.Close()
		p := newTap(t)
		ours(t, kind, base(kind, s), p, model.Request{Model: "m", MaxTokens: 5, Messages: []agent.Message{said(agent.FromUser, "Go")}})
		we, path := maps.Clone(p.header), p.path
		theirs(t.Context(), kind, base(kind, s), p)
		they := maps.Clone(p.header)
		for name := range they {
			if strings.HasPrefix(name, "X-Stainless-") {
				delete(they, name)
			}
		}
		delete(we, "User-Agent")
		delete(they, "User-Agent")
		if !reflect.DeepEqual(we, they) || path != p.path {
			t.Errorf("%s: we ask %s with %v, they %s with %v", kind, path, we, p.path, they)
		}
	}
}
