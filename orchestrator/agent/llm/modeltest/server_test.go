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
