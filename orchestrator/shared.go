package orchestrator

import (
	"context"
	"errors"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/sharedctx"
)

// shared is the shared context as one run uses it.
type shared struct {
	r  *run
	in sharedctx.Store
}

// Shared is the shared context with this run as its reader and writer.
func (r *run) Shared() agent.Shared { return shared{r, r.e.Context(r.d.To)} }

// Get reads one value.
func (s shared) Get(ctx context.Context, namespace, key string) (agent.ContextEntry, bool, error) {
	e, err := s.in.Get(ctx, namespace, key)
	if errors.Is(err, ErrNotFound) {
		return agent.ContextEntry{}, false, nil
	}
	return given(e), err == nil, err
}

// Query reads a namespace.
func (s shared) Query(ctx context.Context, namespace string, limit int) ([]agent.ContextEntry, error) {
	found, err := s.in.Query(ctx, namespace, limit)
	return givenAll(found), err
}

// Prefix reads what begins with prefix.
func (s shared) Prefix(ctx context.Context, namespace, prefix string, limit int) ([]agent.ContextEntry, error) {
	found, err := s.in.Prefix(ctx, namespace, prefix, limit)
	return givenAll(found), err
}

// Set writes one value.
func (s shared) Set(ctx context.Context, w agent.ContextWrite) error { return s.r.PutContext(ctx, w) }

// Touch prolongs the life of a value.
func (s shared) Touch(ctx context.Context, namespace, key string, ttlSeconds int64) (bool, error) {
	_, err := s.in.Touch(ctx, namespace, key, time.Duration(ttlSeconds)*time.Second)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Delete removes a value.
func (s shared) Delete(ctx context.Context, namespace, key string) error {
	return s.in.Delete(ctx, namespace, key)
}

func given(e sharedctx.Entry) agent.ContextEntry {
	return agent.ContextEntry{Namespace: e.Namespace, Key: e.Key, Value: e.Value, Agent: e.Agent}
}

func givenAll(entries []sharedctx.Entry) []agent.ContextEntry {
	all := make([]agent.ContextEntry, 0, len(entries))
	for _, e := range entries {
		all = append(all, given(e))
	}
	return all
}
