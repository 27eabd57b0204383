package approval

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"gatehouse/orchestrator/origin"
)

// later says how often a delivery that failed with err has failed in a row now, when
// to try again, and whether to give up. Only an answer ends a delivery: Gone at once, and
// Refused once it was heard often enough. A service that does not answer has refused
// nothing, so that is tried again for as long as it takes.
func (g *Gateway) later(ctx context.Context, channel origin.Channel, attempts int, err error) (failed int, due time.Time, dead bool) {
	var wait retryAfter
	if errors.As(err, &wait) {
		// Being asked to wait is no failure.
		return attempts, g.now().Add(min(max(wait.wait, leastRetry), longestRetry)), false
	}
	attempts++
	switch {
	case IsGone(err):
		return attempts, g.now(), true
	case IsRefused(err):
		dead = attempts >= MaxAttempts
	default:
		attempts = min(attempts, awayAttempts)
	}
	return attempts, g.now().Add(backoff(attempts, g.longest(ctx, channel))), dead
}

// longest is the ceiling of the pauses between attempts. Where the other side is known
// to answer it is a short one: a delivery that was on its way when health returned fails
// after that, and must not wait as if nobody were there.
func (g *Gateway) longest(ctx context.Context, channel origin.Channel) time.Duration {
	known, err := g.store.Health(ctx)
	g.logError(ctx, "how a channel is could not be read; its next attempt comes later", err)
	if slices.ContainsFunc(known, func(h Health) bool { return h.Channel == string(channel) && h.State == Connected }) {
		return nearRetry
	}
	return lastRetry
}

// backoff is the wait after the n-th failure in a row: doubled each time up to longest,
// and between half and all of that, so that many cards do not come at once.
func backoff(n int, longest time.Duration) time.Duration {
	wait := longest
	if n < 20 {
		wait = min(firstRetry<<(n-1), longest)
	}
	return wait/2 + rand.N(wait/2+1)
}
