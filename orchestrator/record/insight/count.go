package insight

import (
	"context"
	"log/slog"
	"time"
)

// How the sums of the log are kept: countBatch events at a time, at most every countEvery
// while there is news. A new database of an old installation catches up without pauses.
const (
	countEvery = time.Second
	countBatch = 2000
	countLease = "insight"
)

// Store has the sums of the log.
type Store interface {
	InsightState(ctx context.Context) (State, error)
	// CountInsight counts the next events, and tells how many.
	CountInsight(ctx context.Context, limit int) (int, error)
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
}

// Counter keeps the sums behind figures, on one node at a time. It counts until its context
// ends; what fails is tried again, and the cursor of the sums says where.
type Counter struct {
	Store Store
	Node  string
	Grown func() <-chan struct{} // closed when there is more to count
	Log   *slog.Logger
}

// Run counts until ctx ends.
func (c Counter) Run(ctx context.Context) error {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		grown := c.Grown()
		if err := c.All(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("figures were not counted; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-grown:
		}
		select { // many events become one commit
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// All counts what there is, if this node is the one that does.
func (c Counter) All(ctx context.Context) error {
	state, err := c.Store.InsightState(ctx)
	for err == nil && state.Behind > 0 {
		mine, lease := c.Store.Lease(ctx, countLease, c.Node, 10*countEvery)
		if lease != nil || !mine {
			return lease
		}
		n, counting := c.Store.CountInsight(ctx, countBatch)
		if counting != nil || n < countBatch {
			return counting
		}
		state, err = c.Store.InsightState(ctx)
	}
	return err
}
