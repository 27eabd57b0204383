package providers_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/price"
	"gatehouse/orchestrator/agent/llm/model/providers"
	"gatehouse/orchestrator/agent/llm/modeltest"
)

// house is a Set on two services, with a clock that waiting moves.
type house struct {
	anthropic, openai *modeltest.Server
	set               *providers.Set

	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *house) sleep(ctx context.Context, d time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
	h.waits = append(h.waits, d)
	return ctx.Err()
}

func open(t *testing.T, keys []string, first, second modeltest.Script) *house {
	t.Helper()
	h := &house{anthropic: modeltest.Start(first), openai: modeltest.Start(second), now: noon}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		h.anthropic.Close()
		h.openai.Close()
	})
	var err error
	h.set, err = providers.New([]providers.Provider{
		{Name: "anthropic", Kind: providers.Anthropic, Keys: keys, BaseURL: h.anthropic.Anthropic(), Prices: map[string]price.Price{"big": {Input: 3, Output: 15}}},
		{Name: "local", Kind: providers.OpenAI, Keys: []string{""}, BaseURL: h.openai.OpenAI()},
	}, providers.Options{Transport: transport, Now: h.clock, Sleep: h.sleep})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) ask(t *testing.T, delta func(agent.Delta), name string, fallbacks ...string) (model.Response, error) {
	t.Helper()
	c, err := h.set.Client(name, fallbacks...)
	if err != nil {
		t.Fatal(err)
	}
	return c.Complete(t.Context(), ask("Go"), delta)
}

func says(text string) modeltest.Script {
	return func(modeltest.Ask) modeltest.Answer {
		return modeltest.Answer{Text: text, Usage: &modeltest.Usage{Input: 1000, Output: 100}}
	}
}

// P26, K13: a stream that broke in the middle is asked again; what was shown of it is void.
func TestABrokenStreamIsAskedAgain(t *testing.T) {
	var h *house
	h = open(t, []string{"k1"}, func(modeltest.Ask) modeltest.Answer {
		switch len(h.anthropic.Asks()) {
		case 1:
			return modeltest.Answer{Text: "Lost words of a first try", Cut: 4, Usage: &modeltest.Usage{Input: 1000, Output: 100}}
		case 2:
			return modeltest.Answer{Text: "Lost words of a second try", InStream: 4, Status: 529, Type: "overloaded_error", Message: "Overloaded", Usage: &modeltest.Usage{Input: 1000, Output: 100}}
		}
		return says("The answer.")(modeltest.Ask{})
	}, says(""))
	var parts shown
	res, err := h.ask(t, parts.add, "anthropic/big")
	if err != nil {
		t.Fatal(err)
	}
	if parts.resets() != 2 || parts.text(agent.DeltaText) != "The answer." || res.Message.Text() != "The answer." {
		t.Errorf("shown was %+v, the answer is %+v", parts.deltas, res.Message)
	}
	if !slices.Equal(h.waits, []time.Duration{5 * time.Second, 10 * time.Second}) {
		t.Errorf("it waited %v", h.waits)
	}
	// Three inputs and one and two ended outputs were paid; the fake says 1 at each beginning.
	if res.Usage.InputTokens != 3000 || res.Usage.OutputTokens != 102 || res.Usage.USD == nil || *res.Usage.USD != 0.009000+0.001530 {
		t.Errorf("usage is %+v, %v USD", res.Usage, *res.Usage.USD)
	}
}

// P26 with fallback candidates; and a model without a price costs nobody knows what.
func TestAnotherProviderTakesOver(t *testing.T) {
	h := open(t, []string{"k1"}, func(modeltest.Ask) modeltest.Answer {
		return modeltest.Fail(529, "overloaded_error", "Overloaded")
	}, says("from the local one"))
	res, err := h.ask(t, nil, "anthropic/big", "local/org/small:7b")
	if err != nil {
		t.Fatal(err)
	}
	if res.Model != "local/org/small:7b" || res.Usage.USD != nil || len(h.waits) != 3 || len(h.anthropic.Asks()) != 4 {
		t.Errorf("the answer is %+v after waits %v", res, h.waits)
	}
	if got := h.openai.Asks()[0]; got.Model != "org/small:7b" || got.Key != "" {
		t.Errorf("the local one got model %q, key %q", got.Model, got.Key)
	}
}

// P40, P42: two keys at one provider, through the wire.
func TestKeysRotateOnTheWire(t *testing.T) {
	h := open(t, []string{"k1", "k2"}, func(a modeltest.Ask) modeltest.Answer {
		if a.Key == "k2" {
			return modeltest.Fail(400, "invalid_request_error", "Your credit balance is too low")
		}
		return modeltest.Say("fine")
	}, says(""))
	for range 3 {
		if _, err := h.ask(t, nil, "anthropic/big"); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for _, a := range h.anthropic.Asks() {
		keys = append(keys, a.Key)
	}
	if got := strings.Join(keys, " "); got != "k1 k2 k1 k1" || len(h.waits) != 0 {
		t.Errorf("the keys were %s, the waits %v", got, h.waits)
	}
}

// P26 and P42 together: all keys are over their rate; the first that is free is waited for.
func TestRestingKeysAreWaitedFor(t *testing.T) {
	var h *house
	h = open(t, []string{"k1", "k2"}, func(modeltest.Ask) modeltest.Answer {
		if h.clock().Before(noon.Add(30 * time.Second)) {
			return modeltest.Fail(429, "rate_limit_error", "slow down")
		}
		return modeltest.Say("fine")
	}, says(""))
	if _, err := h.ask(t, nil, "anthropic/big"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.waits, []time.Duration{time.Minute}) {
		t.Errorf("it waited %v, want the rest of the first key", h.waits)
	}
}

// P43: one key works as it is, and never rests.
func TestOneKeyNeverRests(t *testing.T) {
	var h *house
	h = open(t, []string{"k1"}, func(modeltest.Ask) modeltest.Answer {
		if len(h.anthropic.Asks()) < 4 {
			return modeltest.Fail(429, "rate_limit_error", "slow down")
		}
		return modeltest.Say("fine")
	}, says(""))
	if _, err := h.ask(t, nil, "anthropic/big"); err != nil || len(h.waits) != 3 {
		t.Errorf("it waited %v and ended with %v", h.waits, err)
	}
}

func TestAModelHasItsProvider(t *testing.T) {
	h := open(t, []string{"k1"}, says(""), says(""))
	for name, want := range map[string]string{
		"gpt-5":         "provider/name",
		"/gpt-5":        "provider/name",
		"anthropic/":    "provider/name",
		"antropic/opus": "there are: anthropic, local",
	} {
		if _, err := h.set.Client(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := h.set.Client("local/x", name); err == nil {
			t.Errorf("%q passes as a fallback", name)
		}
	}
	for _, p := range []providers.Provider{{Name: "x", Kind: "soap", Keys: []string{"k"}}, {Name: "x", Kind: providers.OpenAI}} {
		if _, err := providers.New([]providers.Provider{p}, providers.Options{}); err == nil {
			t.Errorf("%+v passes", p)
		}
	}
}
