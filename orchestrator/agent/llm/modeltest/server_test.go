package modeltest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/modeltest"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	openai "github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, script modeltest.Script) (*modeltest.Server, *http.Client) {
	t.Helper()
	s := modeltest.Start(script)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
	})
	return s, client
}

// works is an answer with all that an answer may have.
func works(modeltest.Ask) modeltest.Answer {
	return modeltest.Answer{Think: "hm", Text: "Some words, and a call.", Calls: []modeltest.Call{modeltest.ToolCall("shell", map[string]string{"command": "ls"})},
		Usage: &modeltest.Usage{Input: 7, Output: 3, CacheRead: 2}}
}

// The official SDKs read the fake's answers in one piece as they read the real ones.
func TestAnswersInOnePiece(t *testing.T) {
	s, client := start(t, works)
	messages := anthropic.NewMessageService(anthropicopt.WithBaseURL(s.Anthropic()), anthropicopt.WithAPIKey("k"), anthropicopt.WithHTTPClient(client))
	m, err := messages.New(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Go"))}})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Content) != 3 || m.Content[1].Text != "Some words, and a call." || m.StopReason != "tool_use" || m.Usage.InputTokens != 7 || m.Content[2].ID == "" {
		t.Errorf("the message is %+v", m)
	}
	chat := openai.NewChatCompletionService(openaiopt.WithBaseURL(s.OpenAI()), openaiopt.WithAPIKey("k"), openaiopt.WithHTTPClient(client))
	c, err := chat.New(t.Context(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Choices[0]; got.Message.Content != "Some words, and a call." || got.FinishReason != "tool_calls" || got.Message.ToolCalls[0].Function.Arguments != `{"command":"ls"}` || c.Usage.PromptTokens != 9 {
		t.Errorf("the completion is %+v", c)
	}
}

// Codex speaks the Responses API, streamed: the official SDK reads the fake's stream, and a
// conversation with a call goes on.
func TestTheResponsesAPIStreams(t *testing.T) {
	s, client := start(t, func(a modeltest.Ask) modeltest.Answer {
		if a.Turn == 1 {
			return works(a)
		}
		return modeltest.Say("the folder has: " + a.Result("shell"))
	})
	service := responses.NewResponseService(openaiopt.WithBaseURL(s.OpenAI()), openaiopt.WithAPIKey("k"), openaiopt.WithHTTPClient(client))
	var input responses.ResponseInputParam
	input = append(input, responses.ResponseInputItemParamOfMessage("Go", responses.EasyInputMessageRoleUser))
	ask := func() (text, arguments string, done responses.Response) {
		stream := service.NewStreaming(t.Context(), responses.ResponseNewParams{Model: "m", Instructions: openai.String("You code."), Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input}})
		defer stream.Close() //nolint:errcheck // nothing is written
		for stream.Next() {
			switch e := stream.Current(); e.Type {
			case "response.output_text.delta":
				text += e.Delta
			case "response.function_call_arguments.delta":
				arguments += e.Delta
			case "response.completed":
				done = e.Response
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		return text, arguments, done
	}
	text, arguments, done := ask()
	if text != "Some words, and a call." || arguments != `{"command":"ls"}` || done.Usage.InputTokens != 9 || len(done.Output) != 2 {
		t.Fatalf("the stream is %q, %q, %+v", text, arguments, done)
	}
	call := done.Output[1].AsFunctionCall()
	output := responses.ResponseInputItemParamOfFunctionCallOutput("main.go")
	output.OfFunctionCallOutput.CallID = openai.String(call.CallID)
	input = append(input, responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name), output)
	if text, _, _ := ask(); text != "the folder has: main.go" {
		t.Errorf("the second answer is %q", text)
	}
	if a := s.Asks()[1]; a.System != "You code." || a.API != modeltest.Responses || a.Turn != 2 || a.Conversation != "Go" {
		t.Errorf("the second call is %+v", a)
	}
}

// What Claude Code asks besides: whether anybody is there, how many tokens, with a query.
func TestTheSmallQuestions(t *testing.T) {
	s, client := start(t, func(modeltest.Ask) modeltest.Answer { return modeltest.Say("fine") })
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"HEAD", "/", "", 200, ""},
		{"POST", "/v1/messages/count_tokens?beta=true", `{"messages":[]}`, 200, `{"input_tokens":4}`},
		{"POST", "/v1/messages?beta=true", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"Go"}]}]}`, 200, `"fine"`},
		{"GET", "/v1/models", "", 200, `"data":[]`},
		{"GET", "/v1/nothing", "", 404, "not_found_error"},
		{"POST", "/v1/nothing", "", 404, "not_found_error"},
		{"POST", "/v1/messages", `{"model":"m","messages":[]}`, 400, "max_tokens"},
		{"POST", "/v1/messages", `{`, 400, "invalid_request_error"},
		{"POST", "/v1/chat/completions", `{"model":"m","messages":[]}`, 400, "at least one message"},
		{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}]}`, 400, "unexpected"},
		{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, 400, "without `tool_result`"},
		{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{}},{"id":"a","function":{}}]}]}`, 400, "must be unique"},
		{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}]}`, 400, "without `tool_result`"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, s.Anthropic()+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close() //nolint:errcheck // it was read
		if err != nil || res.StatusCode != c.status || !bytes.Contains(body, []byte(c.want)) {
			t.Errorf("%s %s %s: %d %s, %v; want %d %s", c.method, c.path, c.body, res.StatusCode, body, err, c.status, c.want)
		}
	}
}

// Crash tests count what was asked twice.
func TestCallsAreCounted(t *testing.T) {
	s, client := start(t, func(modeltest.Ask) modeltest.Answer { return modeltest.Answer{Text: "fine", Stop: model.StopEnd} })
	ask := func(text string) {
		body, err := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": text}}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Post(s.OpenAI()+"/chat/completions", "application/json", bytes.NewReader(body)) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close() //nolint:errcheck // its content is the other tests'
	}
	ask("one")
	ask("two")
	ask("one")
	if s.Asked("one") != 2 || s.Asked("two") != 1 || s.Repeats() != 1 || s.Asks()[2].N != 2 {
		t.Errorf("calls of one: %d, of two: %d, repeats: %d", s.Asked("one"), s.Asked("two"), s.Repeats())
	}
}
