package main

import "context"

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
