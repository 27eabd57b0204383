package orchestrator

import (
	"context"
	"fmt"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
)

// What a no does beyond the delegation that it was said to. By itself nothing: the caller is
// told, and goes on. A plan whose step got a no, and an agent that gave its work away, have
// nothing to go on with: they end rejected, which is no failure. Where nobody decided in time
// it is the same, and they end expired. And a rule about hand-overs may say that a no ends the
// whole task (H18: anything but yes ends the workflow).

// undecided is how a delegation ends whose run found nothing to go on with, by the code that
// it ended with.
var undecided = map[string]State{agent.CodeRejected: Rejected, agent.CodeExpired: Expired}

// Decline ends a delegation that has nothing to go on with after a no further down, or where
// nobody decided there in time; f says whose it was, and why.
func Decline(ctx context.Context, tx Tx, d *Delegation, f *agent.Failure) error {
	d.Error = &agent.Failure{Code: f.Code, Message: mask.Text(f.Message)}
	return end(ctx, tx, d, undecided[f.Code], d.To)
}

// EndWith ends the whole task of a hand-over that has just ended without a yes, as that
// ended. A task that is past going on, because it lands, is left alone.
func EndWith(ctx context.Context, tx Tx, d *Delegation, actor string) error {
	if d.ParentID == "" {
		return nil
	}
	root, err := tx.Delegation(ctx, tx.Task().RootID)
	if err != nil {
		return err
	}
	if root.State.Ended() || !MayMove(root.State, d.State) {
		return nil
	}
	why := fmt.Sprintf("%s ended without a yes.", d.To)
	if d.Error != nil {
		why = d.Error.Message
	}
	root.Error = &agent.Failure{Code: string(d.State), Message: why + " The rule ends the task with it (on_no: end)."}
	return end(ctx, tx, root, d.State, actor)
}
