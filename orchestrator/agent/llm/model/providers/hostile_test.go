package providers_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
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

// recorded are good streams of both services, as they come from the wire.
func recorded(t testing.TB) map[string][]byte {
	t.Helper()
	s := modeltest.Start(func(modeltest.Ask) modeltest.Answer {
		return modeltest.Answer{Think: "hm", Text: "some words", Calls: []modeltest.Call{modeltest.ToolCall("f", map[string]int{"a": 1}), {Name: "g", NoID: true}}, Ping: true}
	})
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	streams := map[string][]byte{}
	for kind, at := range map[string][2]string{
		"anthropic": {s.Anthropic() + "/v1/messages", `{"model":"m","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"x"}]}`},
		"openai":    {s.OpenAI() + "/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`},
	} {
		res, err := client.Post(at[0], "application/json", strings.NewReader(at[1])) //nolint:noctx // a test's set-up
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		res.Body.Close() //nolint:errcheck // it was read
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, string(raw), err)
		}
		streams[kind] = raw
	}
	return streams
}

// clients are both adapters, which get these bytes whatever they ask.
func clients(h hostile) map[string]model.Client {
	return map[string]model.Client{
		"anthropic": anthropic.New(anthropic.Options{Provider: "p", Key: testKey, BaseURL: "http://localhost:1", Transport: h, Now: clock}),
		"openai":    openai.New(openai.Options{Provider: "p", Key: testKey, BaseURL: "http://localhost:1/v1", Transport: h, Now: clock}),
	}
}

// A stream that ends before its end is no answer, wherever it ends.
func TestAStreamCutAnywhere(t *testing.T) {
	ends := map[string]string{"anthropic": "event: message_stop", "openai": `"finish_reason":"tool_calls"`}
	for kind, whole := range recorded(t) {
		end := bytes.Index(whole, []byte(ends[kind]))
		if end < 0 {
			t.Fatalf("the stream of %s has no end: %s", kind, whole)
		}
		for n := 0; n < len(whole); n += 7 {
			var parts shown
			res, err := clients(hostile{status: 200, body: whole[:n]})[kind].Complete(t.Context(), ask("Go"), parts.add)
			switch {
			case n < end && err == nil:
				t.Fatalf("%s: the first %d bytes of %d pass as an answer: %+v", kind, n, len(whole), res)
			case err != nil:
				sound(t, kind, err, parts)
			default:
				fit(t, kind, res)
				if len(res.Message.Calls()) != 2 {
					t.Fatalf("%s: the first %d bytes lost a call: %+v", kind, n, res.Message)
				}
			}
		}
	}
}

// The same bytes in disorder: pieces doubled, lost, exchanged and changed.
func TestStreamsInDisorder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for kind, whole := range recorded(t) {
		for range 300 {
			body := bytes.Clone(whole)
			for range 1 + random.IntN(4) {
				i, j := random.IntN(len(body)), random.IntN(len(body))
				i, j = min(i, j), max(i, j)
				switch random.IntN(4) {
				case 0:
					body[i] = byte(random.IntN(256))
				case 1:
					body = slices.Delete(body, i, min(j, i+200)+1)
				case 2:
					body = slices.Insert(body, i, bytes.Clone(body[i:min(j, i+200)])...)
				default:
					events := bytes.SplitAfter(body, []byte("\n\n"))
					random.Shuffle(len(events), func(a, b int) { events[a], events[b] = events[b], events[a] })
					body = bytes.Join(events, nil)
				}
				if len(body) == 0 {
					body = []byte("\n")
				}
			}
			judge(t, kind, clients(hostile{status: 200, body: body})[kind])
		}
	}
}

// FuzzStreams: whatever a service sends, an adapter answers with an answer that can be
// stored and sent back, or with an error that can be shown.
func FuzzStreams(f *testing.F) {
	for _, raw := range recorded(f) {
		f.Add(200, raw, false)
	}
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
	f.Fuzz(func(t *testing.T, status int, body []byte, slow bool) {
		if status < 100 || status > 999 {
			status = 200
		}
		for kind, c := range clients(hostile{status: status, body: body, slow: slow && len(body) < 4096}) {
			judge(t, kind, c)
		}
	})
}

// judge makes a call and checks what comes of it.
func judge(t *testing.T, kind string, c model.Client) {
	t.Helper()
	var parts shown
	res, err := c.Complete(t.Context(), ask("Go"), parts.add)
	if err != nil {
		sound(t, kind, err, parts)
		return
	}
	fit(t, kind, res)
}

// sound checks that a failure can be shown, and took back what was.
func sound(t *testing.T, kind string, err error, parts shown) {
	t.Helper()
	e := failure(t, err)
	if e.Kind == "" || e.Message == "" || strings.ContainsAny(e.Message, "\n\x00\x1b") || len(e.Message) > 1000 || strings.Contains(e.Message, testKey) || e.RetryAfter < 0 {
		t.Errorf("%s: the error is unfit: %+v", kind, e)
	}
	if n := len(parts.deltas); n > 0 && parts.deltas[n-1].Kind != agent.DeltaReset {
		t.Errorf("%s: parts were shown and not taken back", kind)
	}
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
