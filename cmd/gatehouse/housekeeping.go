package main

import (
	"context"
	"errors"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/record/housekeeping"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store"
)

// keep seals the history and removes what has expired, on one node at a time, until ctx ends.
func (h *house) keep(ctx context.Context) error {
	key, err := h.sealKey()
	if err != nil {
		return err
	}
	old := retention.Run[store.After]{Store: h.store, Log: h.log,
		Rules: func() retention.Rules { return h.engine.Config().Retention },
		Uncounted: func(ctx context.Context) (int64, error) {
			state, err := h.store.InsightState(ctx)
			return state.Behind, err
		}}
	k := &housekeeping.Keeper{Store: h.store, Node: h.node, Key: key, Log: h.log,
		Sweep: h.sweep, Retain: old.Once, Forget: h.forget, Alive: h.alive, Leave: h.leave}
	return k.Run(ctx)
}

// forget removes from this node's mirrors what retention has removed from the store. Each
// node does it for itself.
func (h *house) forget(ctx context.Context) error {
	var all error
	for _, repo := range h.engine.Config().Repositories {
		n, err := h.mirrors.Open(repo).Forget(ctx, func(ids []string) (map[string]bool, error) { return h.store.BlobsGone(ctx, ids) })
		if n > 0 {
			h.log.Info("retention removed refs of old tasks from the mirror", "repository", repo.Name, "refs", n)
		}
		all = errors.Join(all, err)
	}
	return all
}

// keepButtons is how long the buttons of a request that ended get an answer.
const keepButtons = 30 * 24 * time.Hour

// sweep removes what has expired.
func (h *house) sweep(ctx context.Context, now time.Time) error {
	_, values := h.store.Context(cliActor).Cleanup(ctx, now)
	_, signins := h.store.PurgeSignins(ctx, now)
	_, drafts := h.store.PurgeDrafts(ctx, now.Add(-approval.KeepDrafts))
	_, readings := h.store.PurgeReadings(ctx, now.Add(-approval.KeepReadings))
	_, codes := h.store.PurgeLinkCodes(ctx, now)
	_, buttons := h.store.ForgetButtons(ctx, now.Add(-keepButtons))
	_, done := h.store.PurgeDedup(ctx, now.Add(-h.engine.Config().Settings.Spawn.Remembered()))
	return errors.Join(done, values, signins, drafts, readings, codes, buttons)
}

// sweepCaches removes the build caches of agents that are not configured any more: at the
// start, when no agent runs yet that might use them, and after each reload.
func (h *house) sweepCaches(ctx context.Context) error {
	for {
		var agents []string
		for _, spec := range h.loaded.Load().cfg.Engine.Agents.All() {
			agents = append(agents, spec.Name)
		}
		removed, err := h.runner.SweepCaches(ctx, agents)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("caches of agents that are not configured any more could not be removed; trying again at the next reload", "err", err)
		}
		if removed > 0 {
			h.log.Info("the caches of agents that are not configured any more were removed", "folders", removed)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-h.taken:
		}
	}
}
