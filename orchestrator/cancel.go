package orchestrator

import (
	"context"
	"fmt"

	"gatehouse/orchestrator/agent"
)

// Cancel is CancelFor without a reason.
func (e *Engine) Cancel(ctx context.Context, id, actor string) (Delegation, error) {
	return e.CancelFor(ctx, id, actor, "")
}

// CancelFor stops a delegation and everything below it, and stores why, "" where nobody
// said; the id of a task stops its whole tree. Processes are killed by the nodes that run
// them. A landing whose intent is recorded can no longer be stopped.
func (e *Engine) CancelFor(ctx context.Context, id, actor, reason string) (Delegation, error) {
	reason, err := reasonOf(reason)
	if err != nil {
		return Delegation{}, err
	}
	d, err := e.lookUp(ctx, id)
	if err != nil {
		return Delegation{}, err
	}
	var after Delegation
	err = e.Store.InTask(ctx, d.TaskID, func(tx Tx) error {
		row, err := tx.Delegation(ctx, d.ID)
		if err != nil {
			return err
		}
		if row.State.Ended() {
			return Errorf(CodeEnded, "This has ended already, as %s. Nothing was changed.", row.State)
		}
		if err := landingBelow(ctx, tx, row); err != nil {
			return err
		}
		row.Error = &agent.Failure{Code: string(Cancelled), Message: fmt.Sprintf("%s cancelled this.", actor) + because(reason)}
		if err := endFor(ctx, tx, row, Cancelled, actor, reason); err != nil {
			return err
		}
		after = *row
		return nil
	})
	return after, err
}

// landingBelow refuses when the delegation, or one below it, is past its intent.
func landingBelow(ctx context.Context, tx Tx, d *Delegation) error {
	if d.intended() {
		return Errorf(CodeLanding, "The change of %s is landing on %s right now and can no longer be cancelled. Revert it after it landed.", d.To, d.Work.Land.Base.Branch)
	}
	children, err := tx.Live(ctx, d.ID)
	if err != nil {
		return err
	}
	for _, c := range children {
		if err := landingBelow(ctx, tx, c); err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds a delegation by its id, or the root by its task's.
func (e *Engine) lookUp(ctx context.Context, id string) (Delegation, error) {
	if len(id) > len(TaskPrefix) && id[:len(TaskPrefix)] == TaskPrefix {
		t, err := e.Store.Task(ctx, id)
		if err != nil {
			return Delegation{}, err
		}
		id = t.RootID
	}
	return e.Store.Delegation(ctx, id)
}
