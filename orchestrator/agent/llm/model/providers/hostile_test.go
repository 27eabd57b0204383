package providers_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/anthropic"
	"gatehouse/orchestrator/agent/llm/model/openai"
	"gatehouse/orchestrator/agent/llm/modeltest"
)

// hostile answers every call with the same bytes, in one piece or byte by byte.
type hostile struct {
	status int
	body   []byte
	slow   bool
}

func (h hostile) RoundTrip(r *http.Request) (*http.Response, error) {
	var body io.Reader = bytes.NewReader(h.body)
	if h.slow {
		body = iotest.OneByteReader(body)
	}
	return &http.Response{StatusCode: h.status, Status: http.StatusText(h.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}, "Retry-After": {string(h.body[:min(len(h.body), 20)])}}, Body: io.NopCloser(body)}, nil
}

// recorded are good streams: where the fuzzer begins.
func recorded(f *testing.F) {
	s := modeltest.Start(func(modeltest.Ask) modeltest.Answer {
		return modeltest.Answer{Think: "hm", Text: "some words", Calls: []modeltest.Call{modeltest.ToolCall("f", map[string]int{"a": 1}), {Name: "g", NoID: true}}, Ping: true}
	})
	defer s.Close()
	for url, body := range map[string]string{
		s.Anthropic() + "/v1/messages":      `{"model":"m","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"x"}]}`,
		s.OpenAI() + "/chat/completions":    `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`,
		s.Anthropic() + "/v1/messages?b=1":  `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`,
		s.OpenAI() + "/chat/completions?b=": `{}`,
	} {
		res, err := http.Post(url, "application/json", strings.NewReader(body)) //nolint:noctx // a test's set-up
		if err != nil {
			f.Fatal(err)
		}
		raw, err := io.ReadAll(bufio.NewReader(res.Body))
		res.Body.Close() //nolint:errcheck // it was read
		if err != nil {
			f.Fatal(err)
		}
		f.Add(res.StatusCode, raw, false)
	}
	http.DefaultClient.CloseIdleConnections()
	for _, raw := range []string{
		"", "data: \n\n", "data: [DONE]\n\n", "event: error\ndata: {}\n\n", "data: {\"error\":null}\n\n", "data: {\"error\":\"sk-0123456789abcdef\"}\n\n",
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":\"many\"}}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":-9223372036854775808,\"content_block\":[]}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1e99,\"id\":7,\"function\":\"x\"}]},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":{},\"usage\":[]}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\ud800\"},\"finish_reason\":\"\\u0000\"}]}\n\n",
	} {
		f.Add(200, []byte(raw), true)
		f.Add(500, []byte(raw), false)
	}
}

// FuzzStreams: whatever a service sends, an adapter answers with an answer that can be
// stored and sent back, or with an error that can be shown.
func FuzzStreams(f *testing.F) {
	recorded(f)
	f.Fuzz(func(t *testing.T, status int, body []byte, slow bool) {
		if status < 100 || status > 999 {
			status = 200
		}
		h := hostile{status: status, body: body, slow: slow && len(body) < 4096}
		for kind, c := range map[string]model.Client{
			"anthropic": anthropic.New(anthropic.Options{Provider: "p", Key: testKey, BaseURL: "http://localhost:1", Transport: h, Now: clock}),
			"openai":    openai.New(openai.Options{Provider: "p", Key: testKey, BaseURL: "http://localhost:1/v1", Transport: h, Now: clock}),
		} {
			var parts shown
			res, err := c.Complete(t.Context(), ask("Go"), parts.add)
			if err != nil {
				e := failure(t, err)
				if e.Kind == "" || e.Message == "" || strings.ContainsAny(e.Message, "\n\x00\x1b") || len(e.Message) > 1000 || strings.Contains(e.Message, testKey) || e.RetryAfter < 0 {
					t.Errorf("%s: the error is unfit: %+v", kind, e)
				}
				if n := len(parts.deltas); n > 0 && parts.deltas[n-1].Kind != agent.DeltaReset {
					t.Errorf("%s: parts were shown and not taken back", kind)
				}
				continue
			}
			fit(t, kind, res)
		}
	})
}

// fit checks that an answer keeps what model.Client promises.
func fit(t *testing.T, kind string, res model.Response) {
	t.Helper()
	if res.Message.Role != agent.FromModel || !strings.HasPrefix(res.Model, "p/") || res.Usage.InputTokens < 0 || res.Usage.OutputTokens < 0 {
		t.Errorf("%s: the answer is unfit: %+v", kind, res)
	}
	switch res.Stop {
	case model.StopEnd, model.StopTools, model.StopMaxTokens, model.StopRefusal:
	default:
		t.Errorf("%s: it stopped for %q", kind, res.Stop)
	}
	for _, b := range res.Message.Blocks {
		switch {
		case b.Type == agent.CallBlock && !strings.HasPrefix(string(b.Input), "{"):
			t.Errorf("%s: a call's input is %s", kind, b.Input)
		case b.Type == agent.TextBlock && b.Text == "":
			t.Errorf("%s: an empty text", kind)
		}
	}
}
