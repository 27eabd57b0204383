package orchestrator

import (
	"context"
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

// wakeRuns makes the runs of a task go on with what they wait for.
func (e *Engine) wakeRuns(taskID string) {
	for _, r := range e.runsOf(taskID) {
		r.wake()
	}
}

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
