package keys

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// service is a provider behind several keys; fails says how each key fails now.
type service struct {
	mu    sync.Mutex
	now   time.Time
	asked []string
	fails map[string]error
}

func (s *service) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *service) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *service) fail(key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[key] = err
}

// took returns the keys that were asked since the last time.
func (s *service) took() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.Join(s.asked, "")
	s.asked = nil
	return out
}

type withKey struct {
	s   *service
	key string
}

func (c withKey) Complete(context.Context, model.Request, func(agent.Delta)) (model.Response, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.asked = append(c.s.asked, c.key)
	if err := c.s.fails[c.key]; err != nil {
		return model.Response{}, err
	}
	return model.Response{Model: c.key}, nil
}

func ring(names ...string) (*Ring, *service) {
	s := &service{now: noon, fails: map[string]error{}}
	var clients []model.Client
	for _, n := range names {
		clients = append(clients, withKey{s, n})
	}
	return New("openai", s.clock, clients...), s
}

func failed(k model.Kind) *model.Error {
	return &model.Error{Kind: k, Provider: "openai", Message: "no"}
}

func call(t *testing.T, r *Ring) error {
	t.Helper()
	_, err := r.Complete(t.Context(), model.Request{}, nil)
	return err
}

// P40: round-robin over the keys.
func TestKeysTakeTurns(t *testing.T) {
	r, s := ring("a", "b", "c")
	for range 7 {
		if err := call(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.took(); got != "abcabca" {
		t.Errorf("the keys were asked as %s", got)
	}
}

// P40, P42: each key has a rest of its own; the others go on meanwhile.
func TestAFailedKeyRestsAlone(t *testing.T) {
	r, s := ring("a", "b", "c")
	s.fail("b", failed(model.RateLimited))
	for range 4 {
		if err := call(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.took(); got != "abcac" {
		t.Errorf("the keys were asked as %s, want b once and then not", got)
	}
	s.fail("b", nil)
	s.pass(time.Minute)
	for range 3 {
		if err := call(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.took(); !strings.Contains(got, "b") {
		t.Errorf("after a minute the keys were asked as %s, want b again", got)
	}
}

// P41: the rests of both tracks, failure after failure.
func TestRestsGrow(t *testing.T) {
	for _, c := range []struct {
		kind model.Kind
		want []time.Duration
	}{
		{model.RateLimited, []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour, time.Hour}},
		{model.Overloaded, []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour, time.Hour}},
		{model.Network, []time.Duration{time.Minute, 5 * time.Minute}},
		{model.Billing, []time.Duration{5 * time.Hour, 10 * time.Hour, 20 * time.Hour, 24 * time.Hour, 24 * time.Hour}},
		{model.Auth, []time.Duration{5 * time.Hour, 10 * time.Hour}},
	} {
		r, s := ring("a")
		s.fail("a", failed(c.kind))
		for i, want := range c.want {
			if err := call(t, r); err == nil || s.took() != "a" {
				t.Errorf("%s: the key was not asked after its rest %d", c.kind, i)
			}
			s.pass(want - time.Second)
			var e *model.Error
			if err := call(t, r); !errors.As(err, &e) || e.Kind != model.Resting || e.RetryAfter != time.Second || s.took() != "" {
				t.Errorf("%s: a second before the end of rest %d, which should be %s, it is %v", c.kind, i+1, want, err)
			}
			s.pass(time.Second)
		}
	}
}

// P42: success resets.
func TestSuccessForgets(t *testing.T) {
	r, s := ring("a")
	for range 3 {
		s.fail("a", failed(model.RateLimited))
		if err := call(t, r); err == nil {
			t.Fatal("the call went well")
		}
		s.fail("a", nil)
		s.pass(time.Minute) // always the first rest: the failure before was forgotten
		if err := call(t, r); err != nil {
			t.Fatal(err)
		}
	}
}

// P42: all in cooldown is an error, and it says when the first is free.
func TestAllKeysRest(t *testing.T) {
	r, s := ring("a", "b")
	s.fail("a", failed(model.Billing))
	s.fail("b", &model.Error{Kind: model.RateLimited, Message: "slow down", RetryAfter: 3 * time.Minute})
	for range 2 {
		err := call(t, r)
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Resting || e.RetryAfter != 3*time.Minute || !e.Retriable() {
			t.Fatalf("the error is %v", err)
		}
		for _, want := range []string{"all 2 keys rest", "key 2 is free first, at 2026-11-21T12:03:00Z", "slow down", "providers.openai.api_keys"} {
			if !strings.Contains(e.Message, want) {
				t.Errorf("%q does not say %q", e.Message, want)
			}
		}
	}
	if got := s.took(); got != "ab" {
		t.Errorf("the keys were asked as %s, want each once", got)
	}
}

func TestWhatIsNotTheKeysFaultLeavesItAlone(t *testing.T) {
	for _, err := range []error{failed(model.Invalid), failed(model.Overflow), context.Canceled} {
		r, s := ring("a", "b")
		s.fail("a", err)
		if got := call(t, r); !errors.Is(got, err) || s.took() != "a" {
			t.Errorf("%v became %v", err, got)
		}
		s.fail("a", nil)
		for range 2 {
			if got := call(t, r); got != nil {
				t.Errorf("after %v a key rests: %v", err, got)
			}
		}
		if got := s.took(); got != "ba" {
			t.Errorf("after %v the keys were asked as %s", err, got)
		}
	}
}

// A burst that fails together is one failure of each key, not fifty.
func TestABurstCountsOnce(t *testing.T) {
	r, s := ring("a", "b")
	s.fail("a", failed(model.RateLimited))
	s.fail("b", failed(model.RateLimited))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := r.Complete(t.Context(), model.Request{}, nil); err == nil {
				t.Error("a call went well")
			}
		})
	}
	wg.Wait()
	s.fail("a", nil)
	s.fail("b", nil)
	s.pass(time.Minute)
	if err := call(t, r); err != nil {
		t.Errorf("after one rest: %v", err)
	}
}
