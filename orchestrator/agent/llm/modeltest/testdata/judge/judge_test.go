// Package judge has the services' official SDKs judge the program's own clients and the fake
// services of its tests. It is a module of its own, so that nobody else compiles the SDKs.
package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	ouranthropic "gatehouse/orchestrator/agent/llm/model/anthropic"
	ouropenai "gatehouse/orchestrator/agent/llm/model/openai"
	"gatehouse/orchestrator/agent/llm/modeltest"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	openai "github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
)

const key = "sk-test-0123456789abcdef"

// tap is a transport that keeps the last request and what came back.
type tap struct {
	base http.RoundTripper

	mu      sync.Mutex
	header  http.Header
	path    string
	body    []byte
	answers *bytes.Buffer
}

func newTap(t *testing.T) *tap {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &tap{base: transport}
}

func (p *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.mu.Lock()
	p.header, p.path, p.body, p.answers = r.Header, r.URL.Path, body, &bytes.Buffer{}
	p.mu.Unlock()
	res, err := p.base.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(res.Body, p.answers), res.Body}
	}
	return res, err
}

// read is an answer as somebody reads it.
type read struct {
	text, thinking, refusal string
	calls                   []string // id, name and arguments
	stop                    string
	input, output           int64
	cacheRead, cacheWritten int64
	failed                  bool
	status                  int
}

// like reports whether two readings agree. A failure's words and parts are each one's own.
func (r read) like(o read) bool {
	if r.failed || o.failed {
		return r.failed == o.failed && r.status == o.status
	}
	return r.text == o.text && r.thinking == o.thinking && r.refusal == o.refusal && slices.Equal(r.calls, o.calls) && r.stop == o.stop &&
		r.input == o.input && r.output == o.output && r.cacheRead == o.cacheRead && r.cacheWritten == o.cacheWritten
}

// ours asks with the program's client of a kind.
func ours(t *testing.T, kind, base string, transport http.RoundTripper, q model.Request) read {
	t.Helper()
	var c model.Client = ouropenai.New(ouropenai.Options{Provider: kind, Key: key, BaseURL: base, Organization: "org", Transport: transport, Now: now})
	if kind == "anthropic" {
		c = ouranthropic.New(ouranthropic.Options{Provider: kind, Key: key, BaseURL: base, Transport: transport, Now: now})
	}
	res, err := c.Complete(t.Context(), q, nil)
	var failed *model.Error
	if errors.As(err, &failed) {
		return read{failed: true, status: failed.Status}
	}
	if err != nil {
		t.Fatal(err)
	}
	out := read{text: res.Message.Text(), stop: res.Stop, input: res.Usage.InputTokens, output: res.Usage.OutputTokens, cacheRead: res.CacheRead, cacheWritten: res.CacheWritten}
	for _, b := range res.Message.Blocks {
		switch b.Type {
		case agent.CallBlock:
			input := string(b.Input)
			if b.IsError {
				input = b.Text
			}
			out.calls = append(out.calls, b.ID+" "+b.Name+" "+input)
		case agent.OpaqueBlock:
			var thought struct{ Thinking, Signature string }
			if err := json.Unmarshal(b.Opaque, &thought); err != nil {
				t.Fatal(err)
			}
			out.thinking += thought.Thinking + thought.Signature
		}
	}
	return out
}

// theirs asks with the SDK of a kind.
func theirs(ctx context.Context, kind, base string, transport http.RoundTripper) read {
	if kind == "anthropic" {
		return theirMessages(ctx, base, transport)
	}
	return theirChat(ctx, base, transport)
}

func theirMessages(ctx context.Context, base string, transport http.RoundTripper) read {
	service := anthropic.NewMessageService(anthropicopt.WithEnvironmentProduction(), anthropicopt.WithBaseURL(base), anthropicopt.WithAPIKey(key),
		anthropicopt.WithMaxRetries(0), anthropicopt.WithHTTPClient(&http.Client{Transport: transport}))
	stream := service.NewStreaming(ctx, anthropic.MessageNewParams{Model: "m", MaxTokens: 5, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Go"))}})
	defer stream.Close() //nolint:errcheck // nothing is written
	var m anthropic.Message
	ended := false
	for !ended && stream.Next() {
		e := stream.Current()
		if m.Accumulate(e) != nil {
			return read{failed: true}
		}
		ended = e.Type == "message_stop"
	}
	if !ended {
		var failed *anthropic.Error
		if errors.As(stream.Err(), &failed) && failed.StatusCode >= 300 {
			return read{failed: true, status: failed.StatusCode}
		}
		return read{failed: true}
	}
	u := m.Usage
	out := read{input: u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, output: u.OutputTokens, cacheRead: u.CacheReadInputTokens, cacheWritten: u.CacheCreationInputTokens}
	for _, b := range m.Content {
		out.text += b.Text
		out.thinking += b.Thinking + b.Signature
		if b.Type == "tool_use" {
			out.calls = append(out.calls, b.ID+" "+b.Name+" "+string(b.Input))
		}
	}
	out.stop = map[anthropic.StopReason]string{"tool_use": model.StopTools, "max_tokens": model.StopMaxTokens, "refusal": model.StopRefusal}[m.StopReason]
	if out.stop == "" {
		out.stop = model.StopEnd
	}
	return out
}

func theirChat(ctx context.Context, base string, transport http.RoundTripper) read {
	service := openai.NewChatCompletionService(openaiopt.WithEnvironmentProduction(), openaiopt.WithBaseURL(base), openaiopt.WithAPIKey(key), openaiopt.WithOrganization("org"),
		openaiopt.WithMaxRetries(0), openaiopt.WithHTTPClient(&http.Client{Transport: transport}))
	stream := service.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go")}})
	defer stream.Close() //nolint:errcheck // nothing is written
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			return read{failed: true}
		}
	}
	if err := stream.Err(); err != nil || len(all.Choices) == 0 || all.Choices[0].FinishReason == "" {
		var failed *openai.Error
		if errors.As(err, &failed) {
			return read{failed: true, status: failed.StatusCode}
		}
		return read{failed: true}
	}
	choice := all.Choices[0]
	out := read{text: choice.Message.Content + choice.Message.Refusal, input: all.Usage.PromptTokens, output: all.Usage.CompletionTokens, cacheRead: all.Usage.PromptTokensDetails.CachedTokens}
	for _, c := range choice.Message.ToolCalls {
		out.calls = append(out.calls, c.ID+" "+c.Function.Name+" "+c.Function.Arguments)
	}
	out.stop = map[string]string{"tool_calls": model.StopTools, "length": model.StopMaxTokens, "content_filter": model.StopRefusal}[choice.FinishReason]
	if out.stop == "" {
		out.stop = model.StopEnd
	}
	return out
}

// base is a fake's address, as both clients of a kind take it.
func base(kind string, s *modeltest.Server) string {
	if kind == "anthropic" {
		return s.Anthropic()
	}
	return s.OpenAI()
}

// words are the answers that both read.
var words = map[string]modeltest.Answer{
	"words":         {Text: "Grüße, 門番. " + strings.Repeat("More words. ", 20), Usage: &modeltest.Usage{Input: 100, Output: 20, CacheRead: 30, CacheWritten: 4}},
	"in pieces":     {Text: "some words that come in pieces", Split: 3, Ping: true},
	"nothing":       {},
	"thinking":      {Think: "I should think about it first.", Text: "Fine."},
	"calls":         {Text: "Two calls.", Calls: []modeltest.Call{modeltest.ToolCall("f", map[string]any{"a": []int{1, 2}, "b": "<&>\u2028"}), modeltest.ToolCall("g", map[string]string{})}},
	"cut by length": {Text: "some words", Stop: model.StopMaxTokens},
	"refusal":       {Text: "No.", Stop: model.StopRefusal},
	"429":           {Status: 429, Type: "rate_limit_error", Message: "slow down", RetryAfter: "7"},
	"500":           modeltest.Fail(500, "api_error", "Internal"),
	"inside":        {Text: "some words that came", Status: 529, Type: "overloaded_error", Message: "Overloaded", InStream: 3},
	"ended early":   {Text: "some words that came", Short: 3},
	"broken":        {Text: "some words that came", Malformed: 3},
	"no stream":     {Raw: "<html>hello</html>"},
}

// What a service sends is read by the program as its SDK reads it.
func TestAnswersAreReadAlike(t *testing.T) {
	for _, kind := range []string{"anthropic", "openai"} {
		for name, answer := range words {
			t.Run(kind+" "+name, func(t *testing.T) {
				calls := slices.Clone(answer.Calls)
				for i := range calls {
					calls[i].ID = "call_" + string(rune('a'+i)) // a new one each time would differ
				}
				answer.Calls = calls
				if kind == "openai" && answer.Usage != nil {
					answer.Usage.CacheWritten = 0 // the API has no such figure
				}
				if answer.Usage == nil {
					answer.Usage = &modeltest.Usage{Input: 9, Output: 4}
				}
				s := modeltest.Start(func(modeltest.Ask) modeltest.Answer { return answer })
				defer s.Close()
				p := newTap(t)
				we, they := ours(t, kind, base(kind, s), p, model.Request{Model: "m", MaxTokens: 5, Messages: []agent.Message{said(agent.FromUser, "Go")}}), theirs(t.Context(), kind, base(kind, s), p)
				if !we.like(they) {
					t.Errorf("we read  %+v\nthey read %+v", we, they)
				}
			})
		}
	}
}

// bytesOnly answers each call with the same bytes.
type bytesOnly []byte

func (b bytesOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(b))}, nil
}

// A stream that is cut anywhere is an answer to both or to none.
func TestACutStreamIsReadAlike(t *testing.T) {
	for _, kind := range []string{"anthropic", "openai"} {
		s := modeltest.Start(func(modeltest.Ask) modeltest.Answer {
			return modeltest.Answer{Think: "hm", Text: "some words", Calls: []modeltest.Call{modeltest.ToolCall("f", map[string]int{"a": 1})}, Ping: true}
		})
		defer s.Close()
		p := newTap(t)
		q := model.Request{Model: "m", MaxTokens: 5, Messages: []agent.Message{said(agent.FromUser, "Go")}}
		if whole := ours(t, kind, base(kind, s), p, q); whole.failed {
			t.Fatal("the whole stream is no answer")
		}
		stream, answers := p.answers.Bytes(), 0
		for n := len(stream); n >= 0; n -= 3 {
			we, they := ours(t, kind, "http://localhost:1", bytesOnly(stream[:n]), q), theirs(t.Context(), kind, "http://localhost:1", bytesOnly(stream[:n]))
			if !we.like(they) {
				t.Fatalf("%s: of the first %d bytes of %d we read\n%+v, they\n%+v", kind, n, len(stream), we, they)
			}
			if !we.failed {
				answers++
			}
		}
		if answers == 0 {
			t.Errorf("%s: no length of the stream is an answer", kind)
		}
	}
}
