package store

import (
	"context"
	"fmt"
)

// The live ones are few, and the index of what lives finds them.
const selectSpawnedBy = "select count(*) from delegations where ended_at is null and spawned and from_agent = ?"

// SpawnedBy counts the live children that all delegations of an agent have spawned, in all
// tasks. Another transaction that counts them waits until this one has ended.
func (t *Tx) SpawnedBy(_ context.Context, agent string) (int, error) {
	if t.s.dialect.counting != "" {
		if _, err := t.q.exec(t.ctx, t.s.dialect.counting, agent); err != nil {
			return 0, fmt.Errorf("wait to count what %s has spawned: %w", agent, err)
		}
	}
	var n int
	if err := t.q.row(t.ctx, selectSpawnedBy, agent).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what %s has spawned: %w", agent, err)
	}
	return n, nil
}
