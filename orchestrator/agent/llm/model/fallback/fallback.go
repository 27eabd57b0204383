// Package fallback asks the next model when one has failed for good.
//
// The room may import model and agent.
package fallback

import (
	"context"
	"errors"
	"log/slog"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// Candidate is one model at one client.
type Candidate struct {
	Model  string // the provider's own name
	Client model.Client
}

// New is a client that asks the candidates in order; it sets Request.Model itself. What
// the request itself is refused for (Invalid, Overflow), no other model is asked: the
// first is a mistake, the second has its own remedies (P27–P29).
func New(log *slog.Logger, candidates ...Candidate) model.Client { return client{log, candidates} }

type client struct {
	log        *slog.Logger
	candidates []Candidate
}

// Complete asks one candidate after another. All failures are in the error, the first
// one's being what errors.As finds.
func (c client) Complete(ctx context.Context, r model.Request, delta func(agent.Delta)) (model.Response, error) {
	var failures []error
	var paid agent.Usage
	for i, next := range c.candidates {
		r.Model = next.Model
		res, err := next.Client.Complete(ctx, r, delta)
		if err == nil {
			res.Usage = res.Usage.Add(paid)
			return res, nil
		}
		failures = append(failures, err)
		var failed *model.Error
		if ctx.Err() != nil || !errors.As(err, &failed) {
			return model.Response{}, err
		}
		paid = paid.Add(failed.Usage)
		if !failed.Retriable() {
			failed.Usage = paid
			return model.Response{}, err
		}
		if i+1 < len(c.candidates) {
			c.log.Warn("a model failed; the next one is asked", "model", next.Model, "next", c.candidates[i+1].Model, "error", err)
		}
	}
	var first *model.Error
	if errors.As(failures[0], &first) {
		first.Usage = paid
	}
	if len(failures) == 1 {
		return model.Response{}, failures[0]
	}
	return model.Response{}, errors.Join(failures...)
}
