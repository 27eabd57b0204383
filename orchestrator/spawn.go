package orchestrator

import (
	"context"
	"fmt"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
)

// What holds where the configuration says nothing (X6b: the figures of picoclaw today).
const (
	defaultSpawned      = 5
	defaultSpawnTimeout = 5 * time.Minute
)

func (s SpawnSettings) children() int {
	if s.Children <= 0 {
		return defaultSpawned
	}
	return s.Children
}

func (s SpawnSettings) timeout() time.Duration {
	if s.Timeout <= 0 {
		return defaultSpawnTimeout
	}
	return s.Timeout
}

// spawnKey makes spawning idempotent: the same task for the same agent, spawned again by
// the same run, is the child that exists, also once it has ended (P50), until that is forgotten;
// see madeBefore. One that is meant to be made again has a key of its own. to is "" where the
// agent is not known.
func spawnKey(to string, h agent.Hop) string {
	if to == "" {
		to = h.To
	}
	if h.Again {
		return "spawn-" + hopKey(to, h.Text+"\x00"+h.Ref, 0)
	}
	return "spawn-" + hopKey(to, h.Text, 0)
}

// spawnLimit refuses a child too many of those that d does not wait for (P44). The count
// is of the locked row, so it is exact (P54).
func (e *Engine) spawnLimit(ctx context.Context, tx Tx, d *Delegation, p planned) (*guard.Verdict, error) {
	set := e.Config().Settings.Spawn
	if !p.Spawn {
		return nil, nil
	}
	limit := set.children()
	if d.OpenSpawned < limit {
		return agentLimit(ctx, tx, d, set.PerAgent)
	}
	return &guard.Verdict{Guard: "capacity", Code: guard.CodeNoCapacity,
		Message: fmt.Sprintf("%s has %d spawned agents at work, and %d at once is the limit. Wait until one of them has ended, or do this without one.", d.To, d.OpenSpawned, limit)}, nil
}

// agentLimit refuses a child too many of those that all runs of d's agent have spawned
// together (P45). The store keeps other runs of it from counting until the transaction ends,
// so that this count is exact too.
func agentLimit(ctx context.Context, tx Tx, d *Delegation, limit int) (*guard.Verdict, error) {
	if limit <= 0 {
		return nil, nil
	}
	n, err := tx.SpawnedBy(ctx, d.To)
	if err != nil || n < limit {
		return nil, err
	}
	return &guard.Verdict{Guard: "capacity", Code: guard.CodeNoCapacity,
		Message: fmt.Sprintf("%s has %d spawned agents at work in all its runs together, and %d at once is the limit of one agent (engine.spawn.per_agent). Wait until one of them has ended, or do this without one.", d.To, n, limit)}, nil
}
