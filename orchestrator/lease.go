package orchestrator

import (
	"context"
	"slices"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
)

// renewLeases extends the leases of this node's runs at a third of their length,
// all in one statement, and stops runs whose lease is gone. When the store does not
// answer, a run is stopped before its lease ends: after that another node may work
// on the same delegation.
func (e *Engine) renewLeases(ctx context.Context) {
	for {
		lease := e.Config().Settings.Lease
		select {
		case <-ctx.Done():
			return
		case <-time.After(lease / 3):
		}
		held := e.held()
		if len(held) == 0 {
			continue
		}
		until := e.Now().Add(lease)
		call, cancel := context.WithTimeout(ctx, lease/3)
		lost, err := e.Store.Renew(call, e.Node, held, until)
		cancel()
		if err != nil {
			e.Log.Warn("leases could not be renewed", "err", err)
			e.stopBefore(e.Now().Add(lease / 3))
			continue
		}
		e.renewed(held, lost, until)
	}
}

// held lists the attempts that this node works on.
func (e *Engine) held() []Ref {
	e.mu.Lock()
	defer e.mu.Unlock()
	var refs []Ref
	for _, r := range e.runs {
		if r.claimed {
			refs = append(refs, Ref{TaskID: r.task.ID, DelegationID: r.id, Attempt: r.attempt})
		}
	}
	return refs
}

// renewed notes new ends of leases and stops the runs that lost theirs.
func (e *Engine) renewed(held, lost []Ref, until time.Time) {
	gone := make(map[string]int, len(lost))
	for _, ref := range lost {
		gone[ref.DelegationID] = ref.Attempt
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range held {
		r := e.runs[ref.DelegationID]
		if r == nil || r.attempt != ref.Attempt {
			continue
		}
		if attempt, is := gone[ref.DelegationID]; is && attempt == ref.Attempt {
			r.cancel(agent.ErrStopped)
			continue
		}
		r.leaseUntil = until
	}
}

// stopBefore stops the runs whose lease ends before t.
func (e *Engine) stopBefore(t time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if r.claimed && r.leaseUntil.Before(t) {
			r.cancel(agent.ErrStopped)
		}
	}
}

// begin registers a run for a delegation unless this node works on it already.
func (e *Engine) begin(ctx context.Context, ref Ref) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.runs[ref.DelegationID]; r != nil {
		r.again = true
		return nil
	}
	r := newRun(ctx, e, ref)
	e.runs[ref.DelegationID] = r
	return r
}

// forget ends the registration of a run, and looks for work if its delegation was due
// again in the meantime. One that claimed nothing does not make the dispatcher look
// again, or a row that cannot be claimed would keep it spinning.
func (e *Engine) forget(r *run) {
	e.mu.Lock()
	delete(e.runs, r.id)
	due := r.claimed && r.again
	e.mu.Unlock()
	if due {
		e.look()
	}
}

// underway is how many runs are registered.
func (e *Engine) underway() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs)
}

// poke makes the runs of a task look at their rows and go on with what they wait for;
// "" pokes those of all tasks.
func (e *Engine) poke(ctx context.Context, taskID string) {
	for _, r := range e.runsOf(taskID) {
		r.look(ctx)
		r.wake()
	}
}

// pokeAll is poke for every task.
func (e *Engine) pokeAll(ctx context.Context) { e.poke(ctx, "") }

// recheck makes the run of a delegation, if this node has it, look at its row.
func (e *Engine) recheck(ctx context.Context, delegationID string) {
	if r := e.holding(delegationID); r != nil {
		r.look(ctx)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.runs[delegationID]; r != nil {
		r.missed = !r.claimed // it looks as soon as it knows that it has its row
	}
}

// holding is this node's claimed run of a delegation, nil when it has none.
func (e *Engine) holding(delegationID string) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.runs[delegationID]; r != nil && r.claimed {
		return r
	}
	return nil
}

// runsOf lists the claimed runs of a task, or of all tasks.
func (e *Engine) runsOf(taskID string) []*run {
	e.mu.Lock()
	defer e.mu.Unlock()
	var some []*run
	for _, r := range e.runs {
		if r.claimed && (taskID == "" || r.task.ID == taskID) {
			some = append(some, r)
		}
	}
	return some
}

// LandingQueue is the approved changes of one repository that have not landed yet. They land
// one after the other: each moves the branch away from under the next, which is planned and
// checked on what is there by then.
type LandingQueue struct {
	Repository string
	Waiting    int       // the one that lands now included
	HeldUp     int       // of these, those that something is in the way of
	Since      time.Time // when the first of them was approved
	// Pace is what one landing takes, the median of the last Landed ones; zero where none
	// has landed yet.
	Landed int
	Pace   time.Duration
}

// PaceOf is how many landings the pace of a repository is taken of.
const PaceOf = 20

// LandingPace is what one landing took, as the median of the last PaceOf, and of how many.
// Each is given by its yes and its landing. What waited for the one before it began when
// that had landed: so a queue does not make the pace slower.
func LandingPace(landings [][2]time.Time) (int, time.Duration) {
	landings = slices.Clone(landings)
	slices.SortFunc(landings, func(a, b [2]time.Time) int { return a[1].Compare(b[1]) })
	took := make([]time.Duration, 0, len(landings))
	var before time.Time
	for _, l := range landings {
		began := l[0]
		if before.After(began) {
			began = before
		}
		took, before = append(took, max(0, l[1].Sub(began))), l[1]
	}
	if len(took) > PaceOf {
		took = took[len(took)-PaceOf:] // the first one's predecessor is not known
	}
	if len(took) == 0 {
		return 0, 0
	}
	n := len(took)
	slices.Sort(took)
	return n, took[n/2]
}

// Left is how long those that nothing is in the way of take at this pace, 0 where none is known.
func (q LandingQueue) Left() time.Duration {
	return time.Duration(q.Waiting-q.HeldUp) * q.Pace
}

// landingTurns lets landings in one repository go one after the other on this node: each moves
// the branch away from under the next, which would plan and check anew for nothing.
// Other nodes may land in between, so a landing still looks where the branch is.
type landingTurns struct {
	mu sync.Mutex
	of map[string]chan struct{} // by repository; full while somebody has the turn
}

// take waits for the turn in a repository. done gives it back.
func (t *landingTurns) take(ctx context.Context, repository string) (done func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[string]chan struct{}{}
	}
	turn, ok := t.of[repository]
	if !ok {
		turn = make(chan struct{}, 1)
		t.of[repository] = turn
	}
	t.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
