// Package fallback asks the next model when one has failed for good.
//
// The room may import model and agent.
package fallback

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// restFor is how long a model that failed for good is asked last.
const restFor = time.Minute

// Rest remembers that a model failed, for all conversations that ask it: each turn of
// each of them would wait through its retries again. It is safe for concurrent use.
type Rest struct {
	Now func() time.Time

	mu    sync.Mutex
	until time.Time
}

func (r *Rest) resting() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Now().Before(r.until)
}

// note remembers how the last call ended.
func (r *Rest) note(failed bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Time{}
	if failed {
		r.until = r.Now().Add(restFor)
	}
}

// Candidate is one model at one client.
type Candidate struct {
	Model  string // the provider's own name
	Client model.Client
	Rest   *Rest // of this model; nil: it is asked whenever its turn comes
}

// awake puts the candidates that failed a moment ago behind the others.
func awake(all []Candidate) []Candidate {
	var first, last []Candidate
	for _, c := range all {
		if c.Rest.resting() {
			last = append(last, c)
		} else {
			first = append(first, c)
		}
	}
	return append(first, last...)
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
	candidates := awake(c.candidates)
	for i, next := range candidates {
		r.Model = next.Model
		res, err := next.Client.Complete(ctx, r, delta)
		if err == nil {
			next.Rest.note(false)
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
		next.Rest.note(true)
		if i+1 < len(candidates) {
			c.log.Warn("a model failed; the next one is asked", "model", next.Model, "next", candidates[i+1].Model, "error", err)
		}
	}
	if first, ok := errors.AsType[*model.Error](failures[0]); ok {
		first.Usage = paid
	}
	if len(failures) == 1 {
		return model.Response{}, failures[0]
	}
	return model.Response{}, errors.Join(failures...)
}
