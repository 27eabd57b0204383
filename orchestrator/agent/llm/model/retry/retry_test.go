package retry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// scripted fails with its errors in turn, then answers.
type scripted struct {
	errs  []error
	calls int
}

func (s *scripted) Complete(context.Context, model.Request, func(agent.Delta)) (model.Response, error) {
	s.calls++
	if len(s.errs) >= s.calls {
		return model.Response{}, s.errs[s.calls-1]
	}
	return model.Response{Reported: true, Usage: agent.Usage{InputTokens: 10, OutputTokens: 1}}, nil
}

// sleeper remembers the waits.
type sleeper struct{ waits []time.Duration }

func (s *sleeper) sleep(ctx context.Context, d time.Duration) error {
	s.waits = append(s.waits, d)
	return ctx.Err()
}

func fails(n int, e model.Error) []error {
	var out []error
	for range n {
		again := e
		out = append(out, &again)
	}
	return out
}

func TestWhatIsTriedAgain(t *testing.T) {
	s := func(seconds ...int) []time.Duration {
		var out []time.Duration
		for _, n := range seconds {
			out = append(out, time.Duration(n)*time.Second)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		errs  []error
		waits []time.Duration
		fine  bool
	}{
		{"P26: 5, 10, 20 seconds, and then it worked", fails(3, model.Error{Kind: model.RateLimited}), s(5, 10, 20), true},
		{"P26: four failures are the end", fails(4, model.Error{Kind: model.Overloaded}), s(5, 10, 20), false},
		{"a server's failure", fails(1, model.Error{Kind: model.Server}), s(5), true},
		{"a cut stream", fails(1, model.Error{Kind: model.Network}), s(5), true},
		{"an answer that is none", fails(1, model.Error{Kind: model.Malformed}), s(5), true},
		{"the service asks for longer", fails(2, model.Error{Kind: model.RateLimited, RetryAfter: 15 * time.Second}), s(15, 15), true},
		{"the service asks for an hour", fails(1, model.Error{Kind: model.RateLimited, RetryAfter: time.Hour}), s(60), true},
		{"the keys rest a moment", fails(1, model.Error{Kind: model.Resting, RetryAfter: 55 * time.Second}), s(55), true},
		{"the keys rest for hours", fails(1, model.Error{Kind: model.Resting, RetryAfter: 5 * time.Hour}), nil, false},
		{"no credit", fails(1, model.Error{Kind: model.Billing}), nil, false},
		{"a refused key", fails(1, model.Error{Kind: model.Auth}), nil, false},
		{"a refused request", fails(1, model.Error{Kind: model.Invalid}), nil, false},
		{"too long", fails(1, model.Error{Kind: model.Overflow}), nil, false},
		{"no failure of the provider", []error{errors.New("a bug")}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, clock := &scripted{errs: c.errs}, &sleeper{}
			_, err := New(next, Options{Sleep: clock.sleep, Log: slog.New(slog.DiscardHandler)}).Complete(t.Context(), model.Request{}, nil)
			if (err == nil) != c.fine || !slices.Equal(clock.waits, c.waits) || next.calls != len(c.waits)+1 {
				t.Errorf("it asked %d times, waited %v and ended with %v; want waits %v", next.calls, clock.waits, err, c.waits)
			}
			if len(c.waits) == 3 && err != nil && !strings.Contains(err.Error(), "tried 4 times") {
				t.Errorf("the error does not say how often it was tried: %v", err)
			}
		})
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the task was cancelled")
	next := &scripted{errs: fails(4, model.Error{Kind: model.RateLimited})}
	sleep := func(ctx context.Context, d time.Duration) error {
		cancel(over)
		return Sleep(ctx, d) // 5 real seconds, if it did not look
	}
	_, err := New(next, Options{Sleep: sleep, Log: slog.New(slog.DiscardHandler)}).Complete(ctx, model.Request{}, nil)
	if !errors.Is(err, over) || next.calls != 1 {
		t.Errorf("it asked %d times and ended with %v", next.calls, err)
	}
	if err := Sleep(t.Context(), time.Nanosecond); err != nil {
		t.Errorf("a wait to its end is %v", err)
	}
}

// What failed half-way was paid: it counts (O15).
func TestFailedTriesAreCounted(t *testing.T) {
	errs := fails(2, model.Error{Kind: model.Network, Usage: agent.Usage{InputTokens: 100}})
	res, err := New(&scripted{errs: errs}, Options{Sleep: (&sleeper{}).sleep, Log: slog.New(slog.DiscardHandler)}).Complete(t.Context(), model.Request{}, nil)
	if err != nil || res.Usage.InputTokens != 210 || res.Usage.OutputTokens != 1 {
		t.Errorf("usage is %+v, %v; want both failed tries in it", res.Usage, err)
	}
	errs = fails(4, model.Error{Kind: model.Network, Usage: agent.Usage{InputTokens: 100}})
	_, err = New(&scripted{errs: errs}, Options{Sleep: (&sleeper{}).sleep, Log: slog.New(slog.DiscardHandler)}).Complete(t.Context(), model.Request{}, nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Usage.InputTokens != 400 {
		t.Errorf("the failure's usage is %+v", e)
	}
}

// Whoever watches is told why nothing comes, and for how long: the wait is bounded,
// whatever the service asks for.
func TestWaitsAreTold(t *testing.T) {
	var told []string
	waits := func(failed *model.Error, wait time.Duration) { told = append(told, failed.Message+" "+wait.String()) }
	errs := fails(2, model.Error{Kind: model.RateLimited, Message: "slow down", RetryAfter: time.Hour})
	_, err := New(&scripted{errs: errs}, Options{Sleep: (&sleeper{}).sleep, Log: slog.New(slog.DiscardHandler)}).Complete(t.Context(), model.Request{Waits: waits}, nil)
	if err != nil || !slices.Equal(told, []string{"slow down 1m0s", "slow down 1m0s"}) {
		t.Errorf("told %q, %v", told, err)
	}
}
