package orchestrator

import (
	"context"
	"fmt"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

// move writes d in state to, where the row still is as d was read. Only the transitions
// call it, each of which has a name and stands in a file transition*.go; a test looks.
func move(ctx context.Context, tx Tx, d *Delegation, to State) error {
	if !MayMove(d.State, to) {
		return fmt.Errorf("delegation %s cannot go from %s to %s: %w", d.ID, d.State, to, ErrLost)
	}
	from := d.State
	d.State, d.Since = to, tx.Now()
	return tx.Move(ctx, d, from, d.Attempt)
}

// save writes d where the row still is as d was read, in the state that it is in.
func save(ctx context.Context, tx Tx, d *Delegation) error {
	return tx.Move(ctx, d, d.State, d.Attempt)
}

// letGo drops the lease and the run token: nobody works on d now.
func letGo(d *Delegation) {
	d.Holder, d.LeaseUntil, d.TokenHash = "", time.Time{}, ""
	d.Work.ProcessWait = false
}

// Reject ends a delegation whose patch got a no.
func Reject(ctx context.Context, tx Tx, d *Delegation, actor, reason string) error {
	who := actor
	if rule, by := ByRule(actor); by {
		who = fmt.Sprintf("The rule %q", rule)
	}
	message := who + " rejected the change; nothing landed."
	if reason != "" {
		message = fmt.Sprintf("%s rejected the change: %q. Nothing landed.", who, reason)
	}
	d.Error = &agent.Failure{Code: string(Rejected), Message: message}
	return end(ctx, tx, d, Rejected, actor)
}

// Expire ends a delegation on whose patch nobody decided in time.
func Expire(ctx context.Context, tx Tx, d *Delegation) error {
	d.Error = &agent.Failure{Code: string(Expired), Message: "Nobody decided before the deadline. The change was not approved and nothing landed."}
	return end(ctx, tx, d, Expired, "gatehouse")
}

// Succeed ends a delegation with its result, which d holds.
func Succeed(ctx context.Context, tx Tx, d *Delegation) error {
	return end(ctx, tx, d, Completed, d.To)
}

// Fail ends a delegation with the reason.
func Fail(ctx context.Context, tx Tx, d *Delegation, f *agent.Failure) error {
	d.Error = f
	if f != nil {
		told := *f
		told.Message = mask.Text(f.Message)
		d.Error = &told
	}
	return end(ctx, tx, d, Failed, d.To)
}

// end moves d to an ended state, takes its live children and their requests with
// it, and wakes its caller: all in the caller's transaction.
func end(ctx context.Context, tx Tx, d *Delegation, to State, actor string) error {
	return endFor(ctx, tx, d, to, actor, "")
}

// endFor is end with the reason that somebody gave, which the events of all ends repeat.
func endFor(ctx context.Context, tx Tx, d *Delegation, to State, actor, reason string) error {
	letGo(d)
	if err := lostCall(ctx, tx, d); err != nil {
		return err
	}
	now := tx.Now()
	d.EndedAt = &now
	open := d.OpenChildren + d.OpenSpawned
	d.OpenChildren, d.OpenSpawned = 0, 0
	if err := move(ctx, tx, d, to); err != nil {
		return err
	}
	if err := tx.Append(ctx, endEvent(d, actor, reason)); err != nil {
		return err
	}
	// One that landed is closed already; one that was asked to change, or went stale, gets
	// no further revision once its agent has answered without a change.
	if d.ApprovalID != "" {
		if err := tx.CloseRequest(ctx, d.ID, requestEnd(to), ""); err != nil {
			return err
		}
	}
	if open > 0 { // it counts all that are live
		if err := endChildren(ctx, tx, d, actor, reason); err != nil {
			return err
		}
		if err := save(ctx, tx, d); err != nil { // with what they used
			return err
		}
	}
	if err := tellBreaker(ctx, tx, d); err != nil {
		return err
	}
	if d.ParentID == "" {
		tx.Task().EndedAt = &now
		return nil
	}
	return wakeCaller(ctx, tx, d)
}

// endEvent is the event of an end. Rejected and expired delegations have failed for
// whoever watches them; data.state tells which.
func endEvent(d *Delegation, actor, reason string) event.Event {
	end := event.End{Agent: d.To, State: string(d.State), Reason: mask.Text(reason)}
	if d.Error != nil {
		end.Code, end.Message = event.Given(d.Error.Code), event.Given(d.Error.Message)
	}
	switch d.State {
	case Completed:
		said := event.CompletedData{End: end}
		if d.Result != nil {
			said.Text, said.Commit = event.Given(Title(d.Result.Text)), d.Result.Commit
		}
		return event.Of(d.ID, actor, said)
	case Cancelled:
		return event.Of(d.ID, actor, event.CancelledData{End: end})
	default:
		return event.Of(d.ID, actor, event.FailedData{End: end})
	}
}

// endChildren cancels the live delegations below d.
func endChildren(ctx context.Context, tx Tx, d *Delegation, actor, reason string) error {
	children, err := tx.Live(ctx, d.ID)
	if err != nil {
		return err
	}
	for _, c := range children {
		c.Error = &agent.Failure{Code: string(Cancelled), Message: fmt.Sprintf("%s ended before this was done.", d.To)}
		below := c.OpenChildren+c.OpenSpawned > 0
		if err := cancelOne(ctx, tx, c, actor, reason); err != nil {
			return err
		}
		if err := endChildren(ctx, tx, c, actor, reason); err != nil {
			return err
		}
		if below {
			if err := save(ctx, tx, c); err != nil { // with what they used
				return err
			}
		}
		settle(d, c)
		d.Usage = d.Usage.Add(c.Usage)
	}
	return nil
}

// cancelOne ends one delegation without looking at its caller or children.
func cancelOne(ctx context.Context, tx Tx, d *Delegation, actor, reason string) error {
	letGo(d)
	if err := lostCall(ctx, tx, d); err != nil {
		return err
	}
	now := tx.Now()
	d.EndedAt, d.OpenChildren, d.OpenSpawned = &now, 0, 0
	if err := move(ctx, tx, d, Cancelled); err != nil {
		return err
	}
	if err := tx.CloseRequest(ctx, d.ID, RequestCancelled, ""); err != nil {
		return err
	}
	if err := tellBreaker(ctx, tx, d); err != nil {
		return err
	}
	return tx.Append(ctx, endEvent(d, actor, reason))
}

// wakeCaller tells the caller of d that d has ended. The last child's end queues a
// caller that waits, and so does a spawned child's where the caller waits for that; one
// whose process lives keeps its holder, which resumes it.
func wakeCaller(ctx context.Context, tx Tx, d *Delegation) error {
	p, err := tx.Delegation(ctx, d.ParentID)
	if err != nil {
		return err
	}
	if p.State.Ended() || p.Work.Runs != d.Generation {
		return nil
	}
	settle(p, d)
	p.Usage = p.Usage.Add(d.Usage)
	if err := record(ctx, tx, d); err != nil {
		return err
	}
	switch {
	case d.Spawned:
		p.OpenSpawned = max(p.OpenSpawned-1, 0)
	default:
		p.OpenChildren = max(p.OpenChildren-1, 0)
	}
	wakes := p.OpenChildren == 0
	if d.Spawned {
		wakes = p.Work.ForSpawned
	}
	if p.State != Waiting || !wakes {
		return save(ctx, tx, p)
	}
	if err := wake(ctx, tx, p); err != nil {
		return err
	}
	return tx.Append(ctx, event.Of(p.ID, d.To, event.ResumedData{Agent: p.To, Child: d.ID, ChildState: string(d.State)}))
}
