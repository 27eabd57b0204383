package judge

import (
	"net/http"
	"testing"

	"gatehouse/orchestrator/agent/llm/modeltest"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	openai "github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

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
