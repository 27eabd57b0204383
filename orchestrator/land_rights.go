package orchestrator

import (
	"context"
	"errors"
	"slices"

	"gatehouse/orchestrator/patch"
)

// Landings says whose yes counts, as that stands at one moment. The gate makes one right
// before the transaction in which it is used.
type Landings interface {
	// Stand returns the names of those whose yes to the order counts, in the transaction
	// that commits its intent. Where they are too few it is nil, and d waits for people again,
	// who are told soon after the commit.
	Stand(ctx context.Context, tx Tx, d *Delegation, o Order) ([]string, error)
}

// errOthers: the change may land, but not in the names of all whom the plan credits.
var errOthers = errors.New("the approvers are others now")

// landings are the gate's part in landings, nil without a gate.
func (e *Engine) landings(ctx context.Context) (Landings, error) {
	if e.Gate == nil {
		return nil, nil
	}
	return e.Gate.Landings(ctx)
}

// commitIntent asks whether the yeses still count and commits the intent, in one
// transaction: nothing is pushed for somebody who has lost the right by then. Every intent
// comes through here, so that a landing that is planned anew, or taken up after a crash or
// a refused push, asks again, too.
func (e *Engine) commitIntent(r *run, o *Order, in patch.Intent) error {
	rights, err := e.landings(r.ctx)
	if err != nil {
		return err
	}
	others := false
	err = e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		others = false
		if d.State != Landing || d.Work.Land == nil {
			return ErrLost
		}
		if rights != nil {
			names, err := rights.Stand(ctx, tx, d, *d.Work.Land)
			if err != nil {
				return err
			}
			if names == nil {
				return nil // it is asked again
			}
			// The merge names its approvers, and must name nobody who is none.
			if others = slices.ContainsFunc(o.Approvers, func(name string) bool { return !slices.Contains(names, name) }); others {
				d.Work.Land.Approvers, o.Approvers = names, names
				d.Work.Land.Intent = nil
				return save(ctx, tx, d)
			}
		}
		o.Intent = &in
		return putIntent(ctx, tx, d, &in)
	})
	if err == nil && others {
		return errOthers
	}
	return err
}
