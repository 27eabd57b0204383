package orchestrator

import (
	"context"
	"fmt"
	"slices"

	"gatehouse/orchestrator/patch"
)

// The transitions around people: what they are asked, and what they say.

// beginChecking stores the tree that the run of d has made, which goes on to check it.
func beginChecking(ctx context.Context, tx Tx, d *Delegation, tree string, rev patch.Revision, actor string) error {
	if err := keep(ctx, tx, d, tree, rev, actor); err != nil {
		return err
	}
	return move(ctx, tx, d, Checking)
}

// orderChecking stores a tree that a person or git has made: a worker checks it.
func orderChecking(ctx context.Context, tx Tx, d *Delegation, tree string, rev patch.Revision, actor string) error {
	letGo(d)
	d.ReadyAt = tx.Now()
	return beginChecking(ctx, tx, d, tree, rev, actor)
}

// AwaitApproval parks a checked delegation until people decide on the request.
func AwaitApproval(ctx context.Context, tx Tx, d *Delegation, requestID string) error {
	letGo(d)
	d.ApprovalID, d.Losses = requestID, 0
	return move(ctx, tx, d, AwaitingApproval)
}

// askAnew puts a root that was to run again before people first.
func askAnew(ctx context.Context, tx Tx, d *Delegation) error {
	d.ApprovalID = NewID(RequestPrefix, tx.Now())
	return move(ctx, tx, d, AwaitingApproval)
}

// allow queues a child that was born waiting, with what people said yes to.
func allow(ctx context.Context, tx Tx, d *Delegation, yes Pinned) error {
	letGo(d)
	d.ReadyAt, d.Losses, d.Work.Pinned = tx.Now(), 0, &yes
	return move(ctx, tx, d, Queued)
}

// RecallHandover takes the yes to a hand-over back while nobody has begun to work on it;
// after that it is refused, and the work can only be cancelled.
func RecallHandover(ctx context.Context, tx Tx, d *Delegation) error {
	if d.State != Queued || d.Attempt > 0 {
		return Errorf(CodeConflict, "%s has begun to work, so your approval cannot be withdrawn any more. Cancel the delegation instead.", d.To)
	}
	letGo(d)
	return move(ctx, tx, d, AwaitingApproval)
}

// OrderLanding gives a delegation its yes: a worker lands the order's commit.
func OrderLanding(ctx context.Context, tx Tx, d *Delegation, o Order) error {
	letGo(d)
	d.ApprovalID, d.Work.Land, d.ReadyAt, d.Losses = o.RequestID, &o, tx.Now(), 0
	return move(ctx, tx, d, Landing)
}

// Revise gives a delegation that waits for people a tree that one of them made: it is
// checked like any other, and the gate asks again.
func Revise(ctx context.Context, tx Tx, d *Delegation, v Revised, m Made, actor string) error {
	if d.State != AwaitingApproval || d.Work.Tree != v.From {
		return fmt.Errorf("the tree of %s is not the one that was revised: %w", d.ID, ErrLost)
	}
	w := &d.Work
	w.Declined = slices.DeleteFunc(append(w.Declined, m.Declined...), func(p string) bool { return slices.Contains(v.Paths, p) })
	slices.Sort(w.Declined)
	w.Declined = slices.Compact(w.Declined)
	w.Land, w.Made = nil, &m
	return orderChecking(ctx, tx, d, v.Tree, v.Record, actor)
}

// followBase checks and asks again after the branch moved: tree is the change on its new
// head. Who edited it still has a hand in it; a yes that was for the tree before has not.
func followBase(ctx context.Context, tx Tx, d *Delegation, head patch.Base, tree string, rev patch.Revision) error {
	w := &d.Work
	w.Land, w.Stand = nil, standOn(patch.Start{Base: head})
	if w.Made != nil {
		w.Made.Yes = ""
	}
	return orderChecking(ctx, tx, d, tree, rev, d.To)
}

// queueAnew queues a delegation that renew has made one that never ran.
func queueAnew(ctx context.Context, tx Tx, d *Delegation) error { return move(ctx, tx, d, Queued) }
