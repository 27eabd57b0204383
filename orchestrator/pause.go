package orchestrator

import (
	"context"

	"gatehouse/orchestrator/record/event"
)

// Pause holds a task: none of its delegations is claimed any more, models stop once
// their next turn is stored, programs run on to their end, and a landing past its intent
// is carried out. The id is the task's or that of any of its delegations. Pausing a
// paused task changes nothing.
func (e *Engine) Pause(ctx context.Context, id, actor string) (Delegation, error) {
	return e.hold(ctx, id, func(tx Tx, root *Delegation) error {
		t := tx.Task()
		if t.EndedAt != nil {
			return Errorf(CodeEnded, "This task has ended already, as %s. There is nothing to pause.", root.State)
		}
		if t.PausedAt != nil {
			return nil
		}
		now := tx.Now()
		t.PausedAt = &now
		return tx.Append(ctx, event.Of(root.ID, actor, event.PausedData{Agent: t.Agent}))
	})
}

// Unpause lets a paused task go on from where it was held. A task that is not paused
// stays as it is.
func (e *Engine) Unpause(ctx context.Context, id, actor string) (Delegation, error) {
	return e.hold(ctx, id, func(tx Tx, root *Delegation) error {
		t := tx.Task()
		if t.EndedAt != nil {
			return Errorf(CodeEnded, "This task has ended already, as %s. Retry it, or send a new one.", root.State)
		}
		if t.PausedAt == nil {
			return nil
		}
		held := tx.Now().Sub(*t.PausedAt)
		t.PausedAt = nil
		if e.Config().Settings.QueueTimeout > 0 {
			if err := restartQueues(ctx, tx); err != nil {
				return err
			}
		}
		return tx.Append(ctx, event.Of(root.ID, actor, event.UnpausedData{Agent: t.Agent, PausedMS: held.Milliseconds()}))
	})
}

// hold runs fn on the task of a delegation with its root, and returns the delegation
// that was named.
func (e *Engine) hold(ctx context.Context, id string, fn func(tx Tx, root *Delegation) error) (Delegation, error) {
	d, err := e.lookUp(ctx, id)
	if err != nil {
		return Delegation{}, err
	}
	err = e.Store.InTask(ctx, d.TaskID, func(tx Tx) error {
		root, err := tx.Delegation(ctx, tx.Task().RootID)
		if err != nil {
			return err
		}
		return fn(tx, root)
	})
	return d, err
}
