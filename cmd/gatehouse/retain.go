package main

import (
	"context"
	"errors"
	"time"

	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store"
)

const (
	retainRows  = 500             // of one batch, which is one transaction
	retainFor   = 2 * time.Second // of one run; the rest goes on at the next tick
	retainEvery = 10 * time.Minute
	forgetEvery = 24 * time.Hour
	// behind is how many events may not be counted yet: insights read their data.
	behind = 1000
)

// retain removes what the rules say is old, in batches, until it is done or the time of a
// run is over; more tells which. Only the node with the lease of housekeeping does it; of
// two that think so each removes what the other has not.
func (h *house) retain(ctx context.Context, now time.Time) (more bool, err error) {
	rules := h.engine.Config().Retention
	deadline := now.Add(retainFor)
	for _, pass := range []struct {
		what retention.What
		age  time.Duration
	}{{retention.Orphans, retention.OrphanGrace}, {retention.Texts, rules.Data}, {retention.Blobs, rules.Blobs}} {
		if pass.age == 0 {
			continue
		}
		if pass.what == retention.Texts {
			if state, err := h.store.InsightState(ctx); err != nil || state.Behind > behind {
				more = true
				continue
			}
		}
		for after := (store.After{}); ; {
			done, next, err := h.store.Retain(ctx, pass.what, now.Add(-pass.age), after, retainRows)
			if err != nil {
				return true, err
			}
			if !done.Nothing() {
				h.log.Info("retention removed what was old", "what", done.What, "tasks", done.Tasks, "events", done.Events, "blobs", done.Blobs)
			}
			if after = next; !done.More {
				break
			}
			if time.Now().After(deadline) {
				return true, nil
			}
		}
	}
	return more, nil
}

// forget removes from this node's mirrors what retention has removed from the store. Each
// node does it for itself.
func (h *house) forget(ctx context.Context) error {
	var all error
	for _, repo := range h.engine.Config().Repositories {
		m := h.mirrors.Open(repo)
		n, err := m.Forget(ctx, func(ids []string) (map[string]bool, error) { return h.store.BlobsGone(ctx, ids) })
		if n > 0 {
			h.log.Info("retention removed refs of old tasks from the mirror", "repository", repo.Name, "refs", n)
		}
		all = errors.Join(all, err)
	}
	return all
}
