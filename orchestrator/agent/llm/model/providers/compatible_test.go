package providers_test

import (
	"net/http"
	"testing"

	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/anthropic"
	"gatehouse/orchestrator/agent/llm/model/openai"
	"gatehouse/orchestrator/agent/llm/modeltest"
)

// Servers that are only nearly compatible write figures as text, ids as figures, and the
// arguments of a call as the object that they are.
func TestANearlyCompatibleService(t *testing.T) {
	s := modeltest.Start(func(modeltest.Ask) modeltest.Answer {
		return modeltest.Answer{Raw: `data: {"choices":[{"index":"0","delta":{"content":"Hi","tool_calls":[{"id":7,"function":{"name":"f","arguments":{"a":1}}}]},"finish_reason":"stop"}]}

data: {"choices":{},"usage":{"prompt_tokens":"12","completion_tokens":3.0,"prompt_tokens_details":[]}}

data: [DONE]

`}
	})
	defer s.Close()
	res, err := adapter(t, "openai", s, 0).Complete(t.Context(), ask("Go"), nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := res.Message.Calls()
	if res.Message.Text() != "Hi" || len(calls) != 1 || calls[0].ID != "7" || string(calls[0].Input) != `{"a":1}` || res.Stop != model.StopTools {
		t.Errorf("the answer is %+v", res)
	}
	if !res.Reported || res.Usage.InputTokens != 12 || res.Usage.OutputTokens != 3 {
		t.Errorf("usage is %+v", res.Usage)
	}
}

// What a service says under error is quoted, be it an object or only a sentence; what is no
// JSON comes of whoever stands in between, and the status speaks.
func TestAFailureInOtherWords(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
		kind       model.Kind
	}{
		{404, `{"error":"model 'x' not found"}`, "model 'x' not found", model.Invalid},
		{401, `{"error":"who are you?"}`, "who are you?", model.Auth},
		{400, `{"error":{"message":"no such thing","code":400,"type":null}}`, "no such thing", model.Invalid},
		{500, `{"error":{"detail":"odd"}}`, `{"detail":"odd"}`, model.Server},
		{502, "<html>Bad gateway, said the proxy</html>", "Bad Gateway", model.Server},
		{200, "data: {\"error\":{\"code\":503,\"message\":\"overloaded\"}}\n\n", "overloaded", model.Overloaded},
		{200, "data: {\"error\":null}\n\n", `{"error":null}`, model.Server},
	} {
		client := clients(hostile{status: c.status, body: []byte(c.body)})["openai"]
		_, err := client.Complete(t.Context(), ask("Go"), nil)
		if e := failure(t, err); e.Kind != c.kind || len(e.Message) < len(c.want) || e.Message[:len(c.want)] != c.want {
			t.Errorf("%d %s: %s %q, want %s %q", c.status, c.body, e.Kind, e.Message, c.kind, c.want)
		}
	}
}

// A server that wants no key gets none.
func TestNoKeyIsSent(t *testing.T) {
	each(t, func(modeltest.Ask) modeltest.Answer { return modeltest.Say("fine") }, func(t *testing.T, kind string, _ model.Client, s *modeltest.Server) {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		var keyless model.Client = openai.New(openai.Options{BaseURL: s.OpenAI(), Transport: transport, Now: clock})
		if kind == "anthropic" {
			keyless = anthropic.New(anthropic.Options{BaseURL: s.Anthropic(), Transport: transport, Now: clock})
		}
		if _, err := keyless.Complete(t.Context(), ask("Go"), nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Authorization", "X-Api-Key"} {
			if v, sent := s.Asks()[0].Header[http.CanonicalHeaderKey(name)]; sent {
				t.Errorf("%s is %q", name, v)
			}
		}
	})
}
