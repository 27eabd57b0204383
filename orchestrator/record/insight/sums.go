package insight

import (
	"context"
	"log/slog"
	"math"
	"time"
)

// Measure names what is counted.
type Measure string

// The measures. Beside each: what N and Total are.
const (
	Tasks        Measure = "tasks"         // N tasks made
	Handoffs     Measure = "handoffs"      // N hand-overs that the guards let pass, by the agent that got the work
	Runs         Measure = "runs"          // N claims by a worker
	ModelCalls   Measure = "model_calls"   // N answers of models, Total their time in µs
	InputTokens  Measure = "input_tokens"  // Total tokens
	OutputTokens Measure = "output_tokens" // Total tokens
	Money        Measure = "money"         // N reports with a price, Total millionths of a dollar
	Unpriced     Measure = "unpriced"      // N reports without one
	Ended        Measure = "ended"         // N delegations, Code the state
	Failures     Measure = "failures"      // N delegations, Code the error's
	Refusals     Measure = "refusals"      // N hand-overs, Code the guard's, by the agent that asked
	DeniedCalls  Measure = "denied_calls"  // N calls of tools, Code the rule's name, by the agent that would make them
	Accepted     Measure = "accepted"      // from queued to acknowledged (H31): N, Total µs, Bucket
	Done         Measure = "done"          // from queued to the end: N, Total µs, Bucket
	ForSlot      Measure = "for_slot"      // N waits for a worker, Total µs
	ForChildren  Measure = "for_children"  // N waits for delegations below, Total µs
	ForPeople    Measure = "for_people"    // N waits for people, Total µs
	Decided      Measure = "decided"       // from request to decision: N, Total µs, Bucket, Code the channel
	Asked        Measure = "asked"         // N requests, by the agent whose work it is
	Verdicts     Measure = "verdicts"      // N verdicts, Code channel:verdict; see VerdictCode
	Lasted       Measure = "lasted"        // of tasks, from made to ended: N, Total µs, Bucket
	Opened       Measure = "breaker_opened"
	Closed       Measure = "breaker_closed"
)

// Key says what a sum is about; fields that a question does not ask for are empty.
type Key struct {
	Day        int64 // days since 1970 in UTC
	Measure    Measure
	Agent      string
	Model      string // as the provider named it, "" where nobody did
	Repository string
	Code       string
	Bucket     int
}

// Sum is what was counted under a Key.
type Sum struct{ N, Total int64 }

// Sums are the sums of many keys.
type Sums map[Key]Sum

// Add adds to one sum.
func (s Sums) Add(k Key, n, total int64) {
	was := s[k]
	s[k] = Sum{was.N + n, was.Total + total}
}

// Day is the number of the day of t in UTC.
func Day(t time.Time) int64 { return int64(math.Floor(float64(t.Unix()) / 86400)) }

// DayTime is the first moment of a day.
func DayTime(day int64) time.Time { return time.Unix(day*86400, 0).UTC() }

// perDoubling is how many buckets there are from one duration to its double.
const perDoubling = 4

// lastBucket holds everything longer than about 12 days.
const lastBucket = 30 * perDoubling

// BucketOf is the bucket of a duration: bucket 0 ends at 1 ms.
func BucketOf(d time.Duration) int {
	if d <= time.Millisecond {
		return 0
	}
	return min(lastBucket, int(math.Ceil(perDoubling*math.Log2(float64(d)/float64(time.Millisecond))-1e-9)))
}

// Bound is the longest duration of a bucket.
func Bound(bucket int) time.Duration {
	return time.Duration(math.Round(float64(time.Millisecond) * math.Exp2(float64(bucket)/perDoubling)))
}

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
