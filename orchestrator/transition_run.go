package orchestrator

import (
	"context"
	"time"

	"gatehouse/orchestrator/agent"
)

// The births of rows, and the transitions that runs make.

// born gives a row that is about to be inserted its first state.
func born(d *Delegation, s State, now time.Time) {
	d.State = s
	d.CreatedAt, d.ReadyAt, d.Since = now, now, now
}

// bornQueued makes d one that a worker may claim at once.
func bornQueued(d *Delegation, now time.Time) { born(d, Queued, now) }

// bornChecking makes d one that comes with its tree: no agent runs.
func bornChecking(d *Delegation, now time.Time) { born(d, Checking, now) }

// askFirst makes child one that is born waiting for people.
func askFirst(child *Delegation, now time.Time) {
	born(child, AwaitingApproval, now)
	child.ApprovalID, child.Work.Asked = NewID(RequestPrefix, now), true
}

// seize changes d to what it is once r has claimed it, and reports whether its agent runs.
// A row that is there already is written by writeClaim, a new one by its insert.
func (e *Engine) seize(tx Tx, r *run, d *Delegation) bool {
	from, now := d.State, tx.Now()
	d.Attempt++
	d.Holder, d.LeaseUntil = e.Node, now.Add(e.Config().Settings.Lease)
	d.Work.Breaker = e.breakerSettings()
	d.Work.ProcessWait, d.Work.Anew = false, false
	if from != Queued && from != Running {
		return false
	}
	r.token = newToken()
	d.TokenHash, d.State = HashToken(r.token), Running
	if from != Running {
		d.Since = now
	}
	if d.StartedAt == nil {
		d.StartedAt = &now
	}
	return true
}

// writeClaim writes what seize has changed, where the row still is as it was before.
func writeClaim(ctx context.Context, tx Tx, d *Delegation, from State) error {
	return tx.Move(ctx, d, from, d.Attempt-1)
}

// unclaim takes d from a run that ends before its work does: an agent's is queued, a
// check or a landing keeps its state, and so does what waits.
func unclaim(ctx context.Context, tx Tx, d *Delegation, ready time.Time) error {
	letGo(d)
	d.ReadyAt = ready
	if d.State != Running {
		return save(ctx, tx, d)
	}
	return move(ctx, tx, d, Queued)
}

// loseProcess leaves a row waiting alone whose process is gone with its node.
func loseProcess(ctx context.Context, tx Tx, d *Delegation) error {
	letGo(d)
	return save(ctx, tx, d)
}

// waitInProcess makes d wait while its process lives: it keeps its lease. forSpawned says
// that it waits for a child that it spawned.
func waitInProcess(ctx context.Context, tx Tx, d *Delegation, forSpawned bool) error {
	d.Work.ProcessWait, d.Work.ForSpawned = true, forSpawned
	return move(ctx, tx, d, Waiting)
}

// waitAlone makes d wait without a process, a slot or a folder.
func waitAlone(ctx context.Context, tx Tx, d *Delegation) error {
	letGo(d)
	return move(ctx, tx, d, Waiting)
}

// goOn lets the process of d go on, which waited for children.
func goOn(ctx context.Context, tx Tx, d *Delegation) error {
	d.Work.ProcessWait = false
	return move(ctx, tx, d, Running)
}

// wake queues d, which waits without a process for a child that has ended.
func wake(ctx context.Context, tx Tx, d *Delegation) error {
	d.ReadyAt = tx.Now()
	return move(ctx, tx, d, Queued)
}

// workAlone queues a program whose hand-over failed, so that it works by itself. The hop
// is of the run before, and no answer to this one.
func workAlone(ctx context.Context, tx Tx, d *Delegation, failed agent.Fallback) error {
	w := &d.Work
	w.Fallback, w.HandedTo, w.Refused = &failed, "", nil
	w.Runs++
	letGo(d)
	d.ReadyAt, d.Losses = tx.Now(), 0
	return move(ctx, tx, d, Queued)
}
