package approval

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// sweepBatch is how many requests on which something is due are read at once.
const sweepBatch = 100

// Sweep expires every request whose stored deadline has come. Expiry is its own
// outcome, never a yes. Nodes may sweep at once: the task's row orders them.
func (g *Gateway) Sweep(ctx context.Context) error {
	for {
		due, err := g.store.Overdue(ctx, g.now(), sweepBatch)
		if err != nil {
			return fmt.Errorf("looking for requests past their deadline: %w", err)
		}
		done := 0
		var failed error
		for _, r := range due {
			if err := g.expireOne(ctx, r); err != nil {
				failed = errors.Join(failed, fmt.Errorf("expiring %s: %w", r.ID, err))
				continue
			}
			done++
		}
		if failed != nil || len(due) < sweepBatch || done == 0 {
			return failed
		}
	}
}

// expireOne expires one request unless somebody was faster.
func (g *Gateway) expireOne(ctx context.Context, r Request) error {
	err := g.inTask(ctx, r.TaskID, func(tx Tx) error {
		cur, err := tx.Request(ctx, r.ID)
		if err != nil || !cur.overdue(tx.Now()) {
			return err
		}
		return expire(ctx, tx, cur)
	})
	return err
}

// expire ends a question on which nobody decided in time, and its delegation.
func expire(ctx context.Context, tx Tx, r *Request) error {
	d, err := tx.Delegation(ctx, r.DelegationID)
	if err != nil {
		return err
	}
	r.end(Expired, tx.Now())
	if err := tx.SaveRequest(ctx, r); err != nil {
		return err
	}
	said := event.ExpiredData{About: r.about(), Have: len(r.yes()), Need: r.Rule.Need}
	if err := tx.Append(ctx, r.event("gatehouse", said)); err != nil {
		return err
	}
	if r.IsHandover() {
		if err := orchestrator.ExpireHandover(ctx, tx, d); err != nil || r.Rule.OnNo != policy.EndTask {
			return err
		}
		return orchestrator.EndWith(ctx, tx, d, "gatehouse")
	}
	return orchestrator.Expire(ctx, tx, d)
}
