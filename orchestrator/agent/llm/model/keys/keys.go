// Package keys takes turns with several keys of one provider and lets a key rest that
// failed (P40–P43).
//
// The room may import model and agent.
package keys

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// Rests (P41): each failure in a row multiplies the rest of its track.
const (
	transientFirst, transientMost, transientFactor = time.Minute, time.Hour, 5
	billingFirst, billingMost, billingFactor       = 5 * time.Hour, 24 * time.Hour, 2
)

// Ring is one provider's keys: each call takes the next one that does not rest. It is
// safe for concurrent use, and no call waits for another.
type Ring struct {
	provider string
	now      func() time.Time

	mu   sync.Mutex
	next int
	keys []*key
}

// key is one key with its rests.
type key struct {
	client    model.Client
	until     time.Time // it rests until then
	transient int       // failures in a row
	billing   int
	why       string // its last failure
}

// New makes a Ring of clients that differ in their key only; there is at least one.
func New(provider string, now func() time.Time, clients ...model.Client) *Ring {
	r := &Ring{provider: provider, now: now}
	for _, c := range clients {
		r.keys = append(r.keys, &key{client: c})
	}
	return r
}

// Complete makes the call with the next key. What is a key's own fault is tried at once
// with the others; for the rest the caller decides, and gets another key then.
func (r *Ring) Complete(ctx context.Context, q model.Request, delta func(agent.Delta)) (model.Response, error) {
	var paid agent.Usage
	for range r.keys {
		k, err := r.take()
		if err != nil {
			err.Usage = paid
			return model.Response{}, err
		}
		res, failure := k.client.Complete(ctx, q, delta)
		var failed *model.Error
		switch {
		case failure == nil:
			r.fine(k)
			res.Usage = res.Usage.Add(paid)
			return res, nil
		case !errors.As(failure, &failed) || !failed.Retriable():
			return model.Response{}, failure // ctx ended, or the request is at fault: the key is not
		}
		r.rest(k, failed)
		paid = paid.Add(failed.Usage)
		failed.Usage = paid
		if !ownFault(failed.Kind) {
			return model.Response{}, failure
		}
	}
	err := r.resting(r.now())
	err.Usage = paid
	return model.Response{}, err
}

// ownFault reports whether another key may do better at once.
func ownFault(k model.Kind) bool {
	return k == model.RateLimited || k == model.Billing || k == model.Auth
}

// take is the next key that does not rest (P40).
func (r *Ring) take() (*key, *model.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for range r.keys {
		k := r.keys[r.next]
		r.next = (r.next + 1) % len(r.keys)
		if !now.Before(k.until) {
			return k, nil
		}
	}
	return nil, r.allRest(now)
}

// fine forgets a key's failures (P42).
func (r *Ring) fine(k *key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.until, k.transient, k.billing = time.Time{}, 0, 0
}

// rest lets a key rest (P41, P42). Calls that ran at the same time and failed together
// count once: they say one thing.
func (r *Ring) rest(k *key, e *model.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Before(k.until) && e.Kind != model.Billing {
		return
	}
	var d time.Duration
	if e.Kind == model.Billing || e.Kind == model.Auth {
		if now.Before(k.until) && k.billing > 0 {
			return
		}
		d = grown(billingFirst, billingMost, billingFactor, k.billing)
		k.billing++
	} else {
		d = grown(transientFirst, transientMost, transientFactor, k.transient)
		k.transient++
	}
	k.until, k.why = now.Add(max(d, e.RetryAfter)), e.Error()
}

// grown is first times factor for each failure before, at most most.
func grown(first, most time.Duration, factor, failures int) time.Duration {
	d := first
	for range failures {
		if d *= time.Duration(factor); d >= most {
			return most
		}
	}
	return d
}

func (r *Ring) resting(now time.Time) *model.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.allRest(now)
}

// allRest is the error of a ring whose keys all rest; it says which is free first.
func (r *Ring) allRest(now time.Time) *model.Error {
	first := 0
	for i, k := range r.keys {
		if k.until.Before(r.keys[first].until) {
			first = i
		}
	}
	at, why := r.keys[first].until, r.keys[first].why
	return &model.Error{Kind: model.Resting, Provider: r.provider, RetryAfter: max(at.Sub(now), 0),
		Message: fmt.Sprintf("all %d keys rest after failures; key %d is free first, at %s. Wait, or add a key under providers.%s.api_keys. Its failure was: %s",
			len(r.keys), first+1, at.UTC().Format(time.RFC3339), r.provider, why)}
}
