package orchestrator

import (
	"context"
	"errors"
	"time"

	"gatehouse/orchestrator/agent"
)

// Work that nobody takes up may fail instead of waiting without end (A34): with
// engine.queue_timeout, whoever asked hears no_ack, as of an agent elsewhere that does not
// answer. It counts from when the work was queued; while people hold the task no time
// passes, nor before this node began. Work that was taken up once and waits for a worker again is not given up.

// overdueBatch is how many one look gives up at most.
const overdueBatch = 200

// overdue reports whether nobody took d up in time.
func (e *Engine) overdue(tx Tx, d *Delegation) bool {
	limit := e.Config().Settings.QueueTimeout
	if limit <= 0 || d.State != Queued || d.Holder != "" || tx.Task().PausedAt != nil || d.StartedAt != nil && !d.Work.Anew {
		return false
	}
	since := d.Since
	if d.ReadyAt.After(since) {
		since = d.ReadyAt
	}
	if e.began.After(since) { // nobody could take it up before
		since = e.began
	}
	return tx.Now().Sub(since) >= limit
}

// giveUp fails d, which nobody took up. It says nothing about the agent, so that its breaker
// does not count it.
func (e *Engine) giveUp(ctx context.Context, tx Tx, d *Delegation) error {
	d.Error = agent.Fail(agent.CodeNoAck, "Nobody took this up within %s, so it was given up and waits no more. %s was busy, or no worker was free: look at its queue, then retry, or raise `engine.queue_timeout`.",
		e.Config().Settings.QueueTimeout, d.To)
	d.Work.Breaker = nil
	return end(ctx, tx, d, Failed, "gatehouse")
}

// giveUpOverdue looks for work that nobody took up until ctx ends. Every node looks; the
// first one ends it.
func (e *Engine) giveUpOverdue(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limit := e.Config().Settings.QueueTimeout
		if limit <= 0 {
			continue
		}
		refs, err := e.Store.Unclaimed(ctx, e.Now().Add(-limit), overdueBatch)
		for _, ref := range refs {
			err = errors.Join(err, e.giveUpOne(ctx, ref))
		}
		if err != nil && ctx.Err() == nil {
			e.Log.Warn("work that nobody took up could not be given up; trying again", "err", err)
		}
	}
}

// giveUpOne ends what ref names where it is still overdue in its transaction.
func (e *Engine) giveUpOne(ctx context.Context, ref Ref) error {
	err := e.Store.InTask(ctx, ref.TaskID, func(tx Tx) error {
		d, err := tx.Delegation(ctx, ref.DelegationID)
		if err != nil || !e.overdue(tx, d) {
			return err
		}
		return e.giveUp(ctx, tx, d)
	})
	if errors.Is(err, ErrLost) || errors.Is(err, ErrNotFound) {
		return nil // somebody was faster
	}
	return err
}

// restartQueues lets the time of what waits in a task's queues begin anew: people held it.
func restartQueues(ctx context.Context, tx Tx) error {
	tree, err := tx.Tree(ctx)
	if err != nil {
		return err
	}
	for _, d := range tree {
		if d.State != Queued || d.Holder != "" || d.ReadyAt.After(tx.Now()) {
			continue
		}
		d.ReadyAt = tx.Now()
		if err := save(ctx, tx, d); err != nil {
			return err
		}
	}
	return nil
}
