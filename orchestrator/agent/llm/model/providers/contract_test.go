package providers_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/anthropic"
	"gatehouse/orchestrator/agent/llm/model/openai"
	"gatehouse/orchestrator/agent/llm/model/wire"
	"gatehouse/orchestrator/agent/llm/modeltest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789abcdef"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

// kinds are the adapters that pass the contract.
var kinds = []string{"anthropic", "openai"}

// adapter makes the bare adapter of a kind that talks to s.
func adapter(t *testing.T, kind string, s *modeltest.Server, idle time.Duration) model.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	if kind == "anthropic" {
		return anthropic.New(anthropic.Options{Provider: "anthropic", Key: testKey, BaseURL: s.Anthropic(), Transport: transport, Idle: idle, Now: clock})
	}
	return openai.New(openai.Options{Provider: "openai", Key: testKey, BaseURL: s.OpenAI(), Transport: transport, Idle: idle, Now: clock})
}

// each runs a story with each adapter and a server that answers as script says.
func each(t *testing.T, script modeltest.Script, story func(t *testing.T, kind string, c model.Client, s *modeltest.Server)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := modeltest.Start(script)
			t.Cleanup(s.Close)
			story(t, kind, adapter(t, kind, s, 0), s)
		})
	}
}

func user(text string) agent.Message {
	return agent.Message{Role: agent.FromUser, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}
}

func ask(text string) model.Request {
	return model.Request{Model: "some-model", System: "You plan.", Messages: []agent.Message{user(text)}, MaxTokens: 500,
		Tools: []model.Tool{{Name: "delegate_to_agent", Description: "Hands work on", Schema: json.RawMessage(`{"type":"object","properties":{"agent":{"type":"string"}},"required":["agent"],"additionalProperties":false}`)}}}
}

// shown gathers deltas.
type shown struct{ deltas []agent.Delta }

func (s *shown) add(d agent.Delta) { s.deltas = append(s.deltas, d) }

func (s *shown) text(kind string) string {
	var b strings.Builder
	for _, d := range s.deltas {
		if d.Kind == agent.DeltaReset {
			b.Reset()
		}
		if d.Kind == kind {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

func (s *shown) resets() int {
	n := 0
	for _, d := range s.deltas {
		if d.Kind == agent.DeltaReset {
			n++
		}
	}
	return n
}

func failure(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v, want a *model.Error", err)
	}
	return e
}

// A service that repeats the key of the call in its answer gets it into nothing that is
// stored: not the text, not a call, not thinking.
func TestNoAnswerHoldsTheKey(t *testing.T) {
	each(t, func(a modeltest.Ask) modeltest.Answer {
		return modeltest.Answer{Text: "your key is " + a.Key, Think: "I have " + a.Key, Calls: []modeltest.Call{modeltest.ToolCall("delegate_to_agent", map[string]string{"agent": a.Key})}}
	}, func(t *testing.T, _ string, c model.Client, s *modeltest.Server) {
		res, err := c.Complete(t.Context(), ask("Hello"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Asks()[0].Key; got != testKey {
			t.Fatalf("the service got the key %q", got)
		}
		whole, err := json.Marshal(res)
		if err != nil || strings.Contains(string(whole), testKey) || strings.Count(string(whole), "[key]") < 2 || !strings.Contains(res.Message.Text(), "your key is [key]") {
			t.Errorf("%v: %s", err, whole)
		}
	})
}

// K13: what the model writes is shown while it comes, in order, and is the whole in the end.
func TestAnAnswerStreams(t *testing.T) {
	const text = "Grüße aus dem Torhaus, 門番より. A rather long sentence that comes in parts."
	each(t, func(modeltest.Ask) modeltest.Answer {
		return modeltest.Answer{Text: text, Ping: true, Split: 3, Usage: &modeltest.Usage{Input: 100, Output: 20, CacheRead: 30}}
	}, func(t *testing.T, kind string, c model.Client, s *modeltest.Server) {
		var parts shown
		res, err := c.Complete(t.Context(), ask("Hello"), parts.add)
		if err != nil {
			t.Fatal(err)
		}
		if res.Message.Text() != text || res.Message.Role != agent.FromModel || res.Stop != model.StopEnd || res.Model != kind+"/some-model" {
			t.Errorf("the answer is %+v", res)
		}
		if parts.text(agent.DeltaText) != text || len(parts.deltas) < 3 || parts.resets() != 0 {
			t.Errorf("shown was %+v", parts.deltas)
		}
		if !res.Reported || res.Usage.InputTokens != 130 || res.Usage.OutputTokens != 20 || res.CacheRead != 30 || res.Usage.USD != nil {
			t.Errorf("usage is %+v", res)
		}
		got := s.Asks()[0]
		if got.System != "You plan." || got.Key != testKey || got.Model != "some-model" || !got.Stream || got.Conversation != "Hello" {
			t.Errorf("the service got %+v", got)
		}
		if len(got.Tools) != 1 || got.Tools[0].Description != "Hands work on" || !strings.Contains(string(got.Tools[0].Schema), `"additionalProperties":false`) || !strings.Contains(string(got.Tools[0].Schema), `"required":["agent"]`) {
			t.Errorf("the tools are %s", got.Tools[0].Schema)
		}
	})
}

func TestCallsCarryTheirResultsBack(t *testing.T) {
	each(t, func(a modeltest.Ask) modeltest.Answer {
		if a.Turn == 1 {
			return modeltest.Answer{Think: "I should ask.", Text: "Two calls.", Calls: []modeltest.Call{
				modeltest.ToolCall("delegate_to_agent", map[string]string{"agent": "coder"}),
				modeltest.ToolCall("delegate_to_agent", map[string]string{"agent": "reviewer"}),
				modeltest.ToolCall("list_agents", map[string]string{}),
			}}
		}
		return modeltest.Say("coder said: " + a.Result("list_agents"))
	}, func(t *testing.T, kind string, c model.Client, s *modeltest.Server) {
		q := ask("Go")
		var parts shown
		res, err := c.Complete(t.Context(), q, parts.add)
		if err != nil {
			t.Fatal(err)
		}
		calls := res.Message.Calls()
		if len(calls) != 3 || res.Stop != model.StopTools || string(calls[1].Input) != `{"agent":"reviewer"}` || string(calls[2].Input) != "{}" || calls[0].ID == calls[1].ID || calls[0].Name != "delegate_to_agent" {
			t.Fatalf("the calls are %+v, stop %s", calls, res.Stop)
		}
		if got := parts.text(agent.DeltaTool); got != `{"agent":"coder"}{"agent":"reviewer"}{}` {
			t.Errorf("shown of the calls was %q", got)
		}
		if kind == "anthropic" {
			if b := res.Message.Blocks[0]; b.Type != agent.OpaqueBlock || b.Provider != "anthropic" || parts.text(agent.DeltaThinking) != "I should ask." {
				t.Errorf("thinking is %+v", b)
			}
		}
		results := agent.Message{Role: agent.FromTools}
		for i, call := range calls {
			results.Blocks = append(results.Blocks, agent.Block{Type: agent.AnswerBlock, ID: call.ID, Text: []string{"done", "", "nobody"}[i], IsError: i == 2})
		}
		foreign := agent.Block{Type: agent.OpaqueBlock, Provider: "elsewhere", Opaque: json.RawMessage(`{"type":"thinking","thinking":"x","signature":"y"}`)}
		res.Message.Blocks = append([]agent.Block{foreign}, res.Message.Blocks...)
		q.Messages = append(q.Messages, res.Message, results, user("An announcement between the turns."))
		res, err = c.Complete(t.Context(), q, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Message.Text(); !strings.HasSuffix(got, "nobody") {
			t.Errorf("the model saw %q", got)
		}
		opaque := 0
		for _, m := range s.Asks()[1].Messages {
			for _, b := range m.Blocks {
				if b.Type == agent.OpaqueBlock {
					opaque++
				}
			}
		}
		if want := map[string]int{"anthropic": 1}[kind]; opaque != want {
			t.Errorf("%d blocks of thinking went back, want %d: its own, and no other's", opaque, want)
		}
	})
}

// Bad input of a model: each is an answer that the runner can treat, or an error with its kind.
func TestAModelMisbehaves(t *testing.T) {
	type story struct {
		name   string
		answer modeltest.Answer
		check  func(t *testing.T, res model.Response)
	}
	for _, s := range []story{
		{"broken JSON in a call", modeltest.Answer{Calls: []modeltest.Call{{Name: "f", Text: `{"a": [1,`}}}, func(t *testing.T, res model.Response) {
			if c := res.Message.Calls()[0]; !c.IsError || string(c.Input) != "{}" || c.Text != `{"a": [1,` {
				t.Errorf("the call is %+v", c)
			}
		}},
		{"a call whose input is a list", modeltest.Answer{Calls: []modeltest.Call{{Name: "f", Text: `[1]`}}}, func(t *testing.T, res model.Response) {
			if c := res.Message.Calls()[0]; !c.IsError || string(c.Input) != "{}" {
				t.Errorf("the call is %+v", c)
			}
		}},
		{"the same id twice", modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "f"}, {ID: "x", Name: "g"}}}, func(t *testing.T, res model.Response) {
			if c := res.Message.Calls(); len(c) != 2 || c[0].Name != "f" || c[1].Name != "g" {
				t.Errorf("the calls are %+v", c)
			}
		}},
		{"a call without an id", modeltest.Answer{Calls: []modeltest.Call{{Name: "f", NoID: true}, {Name: "g", NoID: true}}}, func(t *testing.T, res model.Response) {
			if c := res.Message.Calls(); len(c) != 2 || c[0].ID != "" || c[1].Name != "g" {
				t.Errorf("the calls are %+v", c)
			}
		}},
		{"no usage", modeltest.Answer{Text: "a", NoUsage: true}, unreported},
		{"negative input", modeltest.Answer{Text: "a", Usage: &modeltest.Usage{Input: -5, Output: 3}}, unreported},
		{"negative output", modeltest.Answer{Text: "a", Usage: &modeltest.Usage{Input: 5, Output: -3}}, unreported},
		{"more than there can be", modeltest.Answer{Text: "a", Usage: &modeltest.Usage{Input: 1 << 62, Output: 1 << 62}}, unreported},
		{"cut by its own limit", modeltest.Answer{Text: "a", Stop: model.StopMaxTokens}, stops(model.StopMaxTokens)},
		{"a refusal", modeltest.Answer{Text: "I cannot", Stop: model.StopRefusal}, stops(model.StopRefusal)},
		{"calls, and says that it ended", modeltest.Answer{Calls: []modeltest.Call{{Name: "f"}}, Stop: model.StopEnd}, stops(model.StopTools)},
		{"an empty answer", modeltest.Answer{}, func(t *testing.T, res model.Response) {
			if len(res.Message.Blocks) != 0 || res.Stop != model.StopEnd {
				t.Errorf("the answer is %+v", res)
			}
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			each(t, func(modeltest.Ask) modeltest.Answer { return s.answer }, func(t *testing.T, _ string, c model.Client, _ *modeltest.Server) {
				res, err := c.Complete(t.Context(), ask("Go"), nil)
				if err != nil {
					t.Fatal(err)
				}
				s.check(t, res)
			})
		})
	}
}

// unreported: the caller then counts the whole reservation (O14, O15).
func unreported(t *testing.T, res model.Response) {
	t.Helper()
	if res.Reported || res.Usage.InputTokens != 0 || res.Usage.OutputTokens != 0 {
		t.Errorf("usage is %+v, reported %v; want nothing", res.Usage, res.Reported)
	}
}

func stops(want string) func(*testing.T, model.Response) {
	return func(t *testing.T, res model.Response) {
		t.Helper()
		if res.Stop != want {
			t.Errorf("it stopped for %s, want %s", res.Stop, want)
		}
	}
}

// P26's failures, and the others: each has its kind, its words, and no key in them.
func TestAServiceFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer modeltest.Answer
		kind   model.Kind
		wait   time.Duration
		words  string
	}{
		{"429", modeltest.Answer{Status: 429, Type: "rate_limit_error", Message: "slow down", RetryAfter: "7"}, model.RateLimited, 7 * time.Second, "slow down"},
		{"429 for a year", modeltest.Answer{Status: 429, Type: "rate_limit_error", Message: "slow down", RetryAfter: "31536000"}, model.RateLimited, wire.MaxRetryAfter, "cut to that"},
		{"429 until yesterday", modeltest.Answer{Status: 429, Message: "slow down", RetryAfter: "-86400"}, model.RateLimited, 0, "past"},
		{"429 until soon", modeltest.Answer{Status: 429, Message: "slow down", RetryAfter: "soon"}, model.RateLimited, 0, "cannot be read"},
		{"500", modeltest.Fail(500, "api_error", "Internal server error"), model.Server, 0, "Internal"},
		{"529", modeltest.Fail(529, "overloaded_error", "Overloaded"), model.Overloaded, 0, "Overloaded"},
		{"503 without words", modeltest.Fail(503, "", ""), model.Overloaded, 0, ""},
		{"overloaded inside a stream", modeltest.Answer{Text: "some words that came", Status: 529, Type: "overloaded_error", Message: "Overloaded", InStream: 3}, model.Overloaded, 0, "Overloaded"},
		{"401", modeltest.Fail(401, "authentication_error", "invalid x-api-key "+testKey), model.Auth, 0, "[key]"},
		{"402", modeltest.Fail(402, "billing_error", "pay"), model.Billing, 0, "pay"},
		{"no credit", modeltest.Fail(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."), model.Billing, 0, "credit"},
		{"no quota", modeltest.Fail(429, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."), model.Billing, 0, "quota"},
		{"too long", modeltest.Fail(400, "invalid_request_error", "prompt is too long: 204800 tokens > 200000 maximum"), model.Overflow, 0, "204800"},
		{"too long, the other way", modeltest.Fail(400, "context_length_exceeded", "This model's maximum context length is 128000 tokens."), model.Overflow, 0, "128000"},
		{"no such model", modeltest.Fail(404, "not_found_error", "model: some-model"), model.Invalid, 0, "some-model"},
		{"a redirect", modeltest.Fail(302, "", ""), model.Invalid, 0, ""},
		{"cut", modeltest.Answer{Text: "some words that came", Cut: 3}, model.Network, 0, "cut"},
		{"cut at the beginning", modeltest.Answer{Text: "some words that came", Cut: 1}, model.Network, 0, "cut"},
		{"ended early", modeltest.Answer{Text: "some words that came", Short: 3}, model.Network, 0, "cut"},
		{"broken JSON", modeltest.Answer{Text: "some words that came", Malformed: 3}, model.Malformed, 0, "cannot be read"},
		{"no stream at all", modeltest.Answer{Raw: "<html>hello</html>"}, model.Malformed, 0, "base_url"},
		{"an endless line", modeltest.Answer{Raw: "data: " + strings.Repeat("x", wire.Limit+5)}, model.Malformed, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(modeltest.Ask) modeltest.Answer { return c.answer }, func(t *testing.T, kind string, client model.Client, s *modeltest.Server) {
				var parts shown
				_, err := client.Complete(t.Context(), ask("Go"), parts.add)
				e := failure(t, err)
				if e.Kind != c.kind || e.RetryAfter != c.wait || e.Provider != kind || !strings.Contains(e.Message, c.words) || e.Message == "" {
					t.Errorf("the error is %+v, want %s after %s with %q", e, c.kind, c.wait, c.words)
				}
				if strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
					t.Errorf("the error's words are unfit: %s", err)
				}
				if n := len(parts.deltas); n > 0 && parts.deltas[n-1].Kind != agent.DeltaReset {
					t.Errorf("parts were shown and not taken back: %+v", parts.deltas)
				}
				if n := len(s.Asks()); n != 1 {
					t.Errorf("the adapter asked %d times, want once: trying again is not its own", n)
				}
			})
		})
	}
}

// A cut call has been paid as far as it came.
func TestACutCallSaysWhatItUsed(t *testing.T) {
	s := modeltest.Start(func(modeltest.Ask) modeltest.Answer {
		return modeltest.Answer{Text: "some words that came", Cut: 4, Usage: &modeltest.Usage{Input: 900, Output: 50}}
	})
	defer s.Close()
	_, err := adapter(t, "anthropic", s, 0).Complete(t.Context(), ask("Go"), nil)
	if e := failure(t, err); e.Usage.InputTokens != 900 {
		t.Errorf("it used %+v, want the input that was reported at the beginning", e.Usage)
	}
}

func TestASilentServiceIsLeft(t *testing.T) {
	for _, kind := range kinds {
		for name, answer := range map[string]modeltest.Answer{"before the answer": {Until: make(chan struct{})}, "within it": {Text: "some words", Hang: 2}} {
			t.Run(kind+" "+name, func(t *testing.T) {
				s := modeltest.Start(func(modeltest.Ask) modeltest.Answer { return answer })
				defer s.Close()
				_, err := adapter(t, kind, s, 50*time.Millisecond).Complete(t.Context(), ask("Go"), nil)
				if e := failure(t, err); e.Kind != model.Network || !strings.Contains(e.Message, "nothing came for too long (50ms)") {
					t.Errorf("the error is %v", e)
				}
			})
		}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	each(t, func(modeltest.Ask) modeltest.Answer { return modeltest.Answer{Text: "some words that came", Hang: 3} },
		func(t *testing.T, _ string, c model.Client, _ *modeltest.Server) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := errors.New("the delegation was cancelled")
			var parts shown
			_, err := c.Complete(ctx, ask("Go"), func(d agent.Delta) {
				parts.add(d)
				cancel(over)
			})
			if !errors.Is(err, over) {
				t.Errorf("the error is %v, want the reason of the end", err)
			}
			var e *model.Error
			if errors.As(err, &e) {
				t.Errorf("an end that was asked for looks like the provider's failure: %v", e)
			}
			if parts.resets() != 1 {
				t.Errorf("shown was %+v, want a reset at the end", parts.deltas)
			}
		})
}

func TestIdsOfOneProviderFitTheOther(t *testing.T) {
	each(t, func(modeltest.Ask) modeltest.Answer { return modeltest.Say("fine") }, func(t *testing.T, _ string, c model.Client, s *modeltest.Server) {
		id := "functions.delegate:0 / " + strings.Repeat("é", 60)
		q := ask("Go")
		q.Messages = append(q.Messages, agent.Message{Role: agent.FromModel, Blocks: []agent.Block{{Type: agent.CallBlock, ID: id, Name: "f", Input: json.RawMessage("null")}}},
			agent.Message{Role: agent.FromTools, Blocks: []agent.Block{{Type: agent.AnswerBlock, ID: id, Text: "ok"}}})
		if _, err := c.Complete(t.Context(), q, nil); err != nil {
			t.Fatal(err)
		}
		sent := s.Asks()[0].Messages
		call := sent[1].Calls()[0]
		if len(call.ID) > 40 || strings.ContainsAny(call.ID, ".: é") || sent[2].Blocks[0].ID != call.ID || string(call.Input) != "{}" {
			t.Errorf("the call went as %+v, its result as %+v", call, sent[2])
		}
	})
}

// The environment of the server says nothing about keys: only the configuration does.
func TestTheEnvironmentIsNotAsked(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_ORG_ID", "ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"} {
		t.Setenv(name, "X-Stray: stray-"+name)
	}
	each(t, func(modeltest.Ask) modeltest.Answer { return modeltest.Say("fine") }, func(t *testing.T, _ string, c model.Client, s *modeltest.Server) {
		if _, err := c.Complete(t.Context(), ask("Go"), nil); err != nil {
			t.Fatal(err)
		}
		for name, values := range s.Asks()[0].Header {
			if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "stray") }) {
				t.Errorf("header %s is %q", name, values)
			}
		}
	})
}
