// Package retry tries a call of a model again when the provider says that it may work a
// little later (P26).
//
// The room may import model and agent.
package retry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// MaxWait bounds one wait, whatever the provider asks for.
const MaxWait = time.Minute

// Delays are the waits before the second, third and fourth try (P26).
func Delays() []time.Duration {
	return []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}
}

// Options of a Client; all are needed but Delays.
type Options struct {
	Delays []time.Duration // nil is Delays()
	// Sleep waits and returns early with an error when ctx ends.
	Sleep func(ctx context.Context, d time.Duration) error
	Log   *slog.Logger
}

// Client tries calls of another client again. It is safe for concurrent use when that is.
type Client struct {
	next model.Client
	o    Options
}

// New makes a Client over next.
func New(next model.Client, o Options) *Client {
	if o.Delays == nil {
		o.Delays = Delays()
	}
	return &Client{next: next, o: o}
}

// Complete makes the call, and again after each delay. The usage of tries that failed
// half-way is part of the answer's, for it was paid.
func (c *Client) Complete(ctx context.Context, r model.Request, delta func(agent.Delta)) (model.Response, error) {
	var paid agent.Usage
	for try := 0; ; try++ {
		res, err := c.next.Complete(ctx, r, delta)
		if err == nil {
			res.Usage = res.Usage.Add(paid)
			return res, nil
		}
		var failed *model.Error
		if !errors.As(err, &failed) {
			return model.Response{}, err
		}
		paid = paid.Add(failed.Usage)
		failed.Usage = paid
		if try == len(c.o.Delays) || !later(failed) {
			if try > 0 {
				failed.Message = fmt.Sprintf("%s (tried %d times)", failed.Message, try+1)
			}
			return model.Response{}, err
		}
		wait := min(max(c.o.Delays[try], failed.RetryAfter), MaxWait)
		c.o.Log.Warn("a model's call failed and is tried again", "model", r.Model, "error", failed, "try", try+1, "wait", wait)
		if r.Waits != nil {
			r.Waits(failed, wait)
		}
		if err := c.o.Sleep(ctx, wait); err != nil {
			return model.Response{}, fmt.Errorf("the call of the model was stopped while it waited to try again: %w", err)
		}
	}
}

// later reports whether waiting may help: another key or model is not a matter of time,
// nor do keys that rest longer than a wait get free by it.
func later(e *model.Error) bool {
	switch e.Kind {
	case model.Billing, model.Auth:
		return false
	case model.Resting:
		return e.RetryAfter <= MaxWait
	}
	return e.Retriable()
}

// Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
