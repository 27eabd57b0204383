package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Reverter makes the task that undoes a landed request: its root is born checking
// with the tree that undoes it. The engine is one. For one person and one request it
// makes one task and returns that again. What cannot be undone is an
// *orchestrator.Error.
type Reverter interface {
	Revert(ctx context.Context, requestID, delegationID, requesterID, requester string, via origin.Origin) (orchestrator.Task, error)
}

// SetReverter says who makes reverts; the engine needs the gateway first.
func (g *Gateway) SetReverter(v Reverter) { g.reverter.Store(&v) }

// Revert asks for the landed request to be undone: a new task whose own request
// people decide on. A request is reverted once; after a revert that did not land
// another may be asked for.
func (g *Gateway) Revert(ctx context.Context, requestID string, by people.Principal) (orchestrator.Task, error) {
	v := g.reverter.Load()
	if v == nil {
		return orchestrator.Task{}, orchestrator.Errorf(orchestrator.CodeUnavailable, "This server makes no reverts. Revert the commit with git.")
	}
	if by.Run != nil || (!by.Has(people.TasksWrite) && !by.Has(people.ApprovalsDecide)) {
		return orchestrator.Task{}, orchestrator.Errorf(orchestrator.CodeForbidden, "Reverting needs the role operator or approver.")
	}
	r, err := g.Request(ctx, requestID)
	if err != nil {
		return orchestrator.Task{}, err
	}
	who, err := g.claimRevert(ctx, r, by.User)
	if err != nil {
		return orchestrator.Task{}, err
	}
	t, err := (*v).Revert(ctx, r.ID, r.DelegationID, who.ID, who.Name, origin.From(origin.Revert))
	// A refusal has made no task, so the claim is given back. After any other error
	// the claim stays, and the next Revert finishes what it was for.
	if refused := new(orchestrator.Error); errors.As(err, &refused) {
		return orchestrator.Task{}, errors.Join(err, g.link(ctx, r, who.ID, ""))
	}
	if err != nil {
		return orchestrator.Task{}, fmt.Errorf("reverting %s: %w", r.ID, err)
	}
	if err := g.link(ctx, r, who.ID, t.ID); err != nil {
		return orchestrator.Task{}, err
	}
	return t, nil
}

// claimRevert makes sure that one person's revert is made and returns whose: of two
// people who ask at once the second finishes what the first asked for, and so does
// whoever asks after a crash between the claim and the task.
func (g *Gateway) claimRevert(ctx context.Context, r Request, u people.User) (people.User, error) {
	if r.State != Landed || r.Revision.Delivery().Pushes() {
		return u, revertRefused(r)
	}
	if strings.HasPrefix(r.RevertedBy, orchestrator.UserPrefix) {
		users, err := g.users.Users(ctx)
		if err != nil {
			return u, err
		}
		for _, other := range users {
			if other.ID == r.RevertedBy {
				return other, nil
			}
		}
	} else if r.RevertedBy != "" {
		page, err := g.store.Requests(ctx, Filter{TaskID: r.RevertedBy, Limit: 1})
		if err != nil {
			return u, err
		}
		if len(page.Items) == 0 || !page.Items[0].over() {
			return u, revertRefused(r)
		}
	}
	return u, g.link(ctx, r, r.RevertedBy, u.ID)
}

// over reports whether r ended without landing.
func (r Request) over() bool {
	switch r.State {
	case Rejected, Expired, Failed, Cancelled:
		return true
	default:
		return false
	}
}

func revertRefused(r Request) error {
	switch {
	case r.Revision.Delivery().Pushes():
		return orchestrator.Errorf(orchestrator.CodeConflict, "This change was pushed to %s and is not on %s by Gatehouse's hand. Close that branch, or undo its merge where it was merged.", r.Revision.Branch, r.Revision.Base.Branch)
	case strings.HasPrefix(r.RevertedBy, orchestrator.TaskPrefix):
		return orchestrator.Errorf(orchestrator.CodeConflict, "A revert of this request was asked for already: see task %s.", r.RevertedBy)
	case r.RevertedBy != "":
		return orchestrator.Errorf(orchestrator.CodeConflict, "A revert of this request is being asked for right now. Look again in a moment.")
	}
	return orchestrator.Errorf(orchestrator.CodeConflict, "This request is %s. Only one that has landed can be reverted.", r.State)
}

// link names who or what reverts r, where that is still as it was read: first the
// person who claims it, then the task. Named already as wanted, it changes nothing.
func (g *Gateway) link(ctx context.Context, r Request, was, by string) error {
	return g.store.InGate(ctx, r.TaskID, func(tx Tx) error {
		cur, err := tx.Request(ctx, r.ID)
		if err != nil || cur.RevertedBy == by {
			return err
		}
		if cur.State != Landed || cur.RevertedBy != was {
			return revertRefused(*cur)
		}
		cur.RevertedBy = by
		return tx.SaveRequest(ctx, cur)
	})
}

// markReverted tells the request that was undone that by has landed. It is called
// at least once for each revert that landed and changes something only once.
func (g *Gateway) markReverted(ctx context.Context, by Request) error {
	r, err := g.store.Request(ctx, by.RevertOf)
	if err != nil || r.State != Landed {
		return err
	}
	err = g.store.InGate(ctx, r.TaskID, func(tx Tx) error {
		cur, err := tx.Request(ctx, r.ID)
		if err != nil || cur.State != Landed {
			return err
		}
		cur.setState(Reverted)
		cur.RevertedBy = by.TaskID
		if err := tx.SaveRequest(ctx, cur); err != nil {
			return err
		}
		said := event.PatchRevertedData{About: cur.about(), By: by.ID, Task: by.TaskID, Commit: by.Landed}
		return tx.Append(ctx, cur.event(by.Requester, said))
	})
	if err != nil {
		return fmt.Errorf("marking %s as reverted by %s: %w", r.ID, by.ID, err)
	}
	return nil
}
