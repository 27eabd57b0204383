package approval

import (
	"context"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
)

// CloseRequest ends the newest request of a delegation with it and makes its cards due. Of one
// that landed it remembers which contents people approved where. No request, or one that has
// ended, is no error. It is what orchestrator.Tx does under this name.
func CloseRequest(ctx context.Context, tx Tx, delegationID string, end orchestrator.RequestEnd, commit string) error {
	r, err := tx.NewestRequest(ctx, delegationID)
	if err != nil || r == nil || !r.close(State(end), commit) {
		return err
	}
	if r.State == Landed {
		if err := tx.KeepApproved(ctx, r.Repository, r.Vouched()); err != nil {
			return err
		}
	}
	return tx.SaveRequest(ctx, r)
}

// mayClose reports whether the end of its delegation ends a request in this state. The last
// three have ended, but a further revision could have followed.
func (s State) mayClose() bool {
	switch s {
	case Pending, Approved, ChangesRequested, Superseded, Stale:
		return true
	}
	return false
}

// close ends r with its delegation, and reports whether that changed anything.
func (r *Request) close(end State, commit string) bool {
	if !r.State.mayClose() {
		return false
	}
	if r.IsHandover() && r.State != Pending { // the yes was to the hand-over, whatever came of the work
		return false
	}
	if r.Revision.State == r.State || r.Revision.State == Pending {
		r.Revision.State = end
	}
	r.State, r.NextAt = end, nil
	if commit != "" {
		r.Landed = commit
	}
	return true
}

// Overtake puts onto the newest request of a delegation why a yes to it lands nothing.
// CloseRequest, which comes next, writes it. It is Overtaken of orchestrator.Tx.
func Overtake(ctx context.Context, tx Tx, delegationID string, o patch.Overtaken) error {
	r, err := tx.NewestRequest(ctx, delegationID)
	if err != nil || r == nil {
		return err
	}
	r.Revision.Overtaken = &o
	return nil
}

// ShowLanding makes the cards of the newest request of a delegation due, where it is approved:
// what they say of its landing has changed. It is what orchestrator.Tx does under this name.
func ShowLanding(ctx context.Context, tx Tx, delegationID string) error {
	r, err := tx.NewestRequest(ctx, delegationID)
	if err != nil || r == nil || r.State != Approved {
		return err
	}
	return tx.SaveRequest(ctx, r)
}
