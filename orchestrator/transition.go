package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// move writes d in state to, where the row still is as d was read. Only the transitions
// call it, each of which has a name and stands in this file; a test looks.
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
	return end(ctx, tx, d, Rejected, actor, "")
}

// Expire ends a delegation on whose patch nobody decided in time.
func Expire(ctx context.Context, tx Tx, d *Delegation) error {
	d.Error = &agent.Failure{Code: string(Expired), Message: "Nobody decided before the deadline. The change was not approved and nothing landed."}
	return end(ctx, tx, d, Expired, "gatehouse", "")
}

// Succeed ends a delegation with its result, which d holds.
func Succeed(ctx context.Context, tx Tx, d *Delegation) error {
	return end(ctx, tx, d, Completed, d.To, "")
}

// Fail ends a delegation with the reason.
func Fail(ctx context.Context, tx Tx, d *Delegation, f *agent.Failure) error {
	d.Error = f
	if f != nil {
		told := *f
		told.Message = mask.Text(f.Message)
		d.Error = &told
	}
	return end(ctx, tx, d, Failed, d.To, "")
}

// end moves d to an ended state, takes its live children and their requests with it, and
// wakes its caller: all in the caller's transaction. reason is why somebody ended it, "" where
// nobody said; the events of all ends repeat it.
func end(ctx context.Context, tx Tx, d *Delegation, to State, actor, reason string) error {
	if err := endBranch(ctx, tx, d, to, actor, reason); err != nil {
		return err
	}
	if d.ParentID == "" {
		tx.Task().EndedAt = d.EndedAt
		return nil
	}
	return wakeCaller(ctx, tx, d)
}

// endBranch ends d and all below it without looking at its caller.
func endBranch(ctx context.Context, tx Tx, d *Delegation, to State, actor, reason string) error {
	letGo(d)
	if err := lostCall(ctx, tx, d); err != nil {
		return err
	}
	if err := closeAsks(ctx, tx, d); err != nil {
		return err
	}
	open := d.OpenChildren + d.OpenSpawned
	d.EndedAt, d.OpenChildren, d.OpenSpawned = new(tx.Now()), 0, 0
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
	return tellBreaker(ctx, tx, d)
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
		if err := endBranch(ctx, tx, c, Cancelled, actor, reason); err != nil {
			return err
		}
		settle(d, c)
		d.Usage = d.Usage.Add(c.Usage)
	}
	return nil
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
	p.answeredBy(d)
	if err := record(ctx, tx, d); err != nil {
		return err
	}
	var wakes bool
	if d.Spawned {
		p.OpenSpawned = max(p.OpenSpawned-1, 0)
		wakes = p.Work.ForSpawned
	} else {
		p.OpenChildren = max(p.OpenChildren-1, 0)
		wakes = p.open() == 0
	}
	if p.State != Waiting || !wakes {
		return save(ctx, tx, p)
	}
	if err := wake(ctx, tx, p); err != nil {
		return err
	}
	return tx.Append(ctx, event.Of(p.ID, d.To, event.ResumedData{Agent: p.To, Child: d.ID, ChildState: string(d.State)}))
}

// The births of rows, and the transitions that runs make.

// born gives a row that is about to be inserted its first state.
func born(d *Delegation, s State, now time.Time) {
	d.State = s
	d.CreatedAt, d.ReadyAt, d.Since = now, now, now
}

// bornQueued makes d one that a worker may claim at once.
func bornQueued(d *Delegation, now time.Time) { born(d, Queued, now) }

// bornChecking makes d one that comes with its tree: no agent runs.
func bornChecking(d *Delegation, now time.Time) { born(d, Checking, now) }

// askFirst makes child one that is born waiting for people.
func askFirst(child *Delegation, now time.Time) {
	born(child, AwaitingApproval, now)
	child.ApprovalID, child.Work.Asked = NewID(RequestPrefix, now), true
}

// seize changes d to what it is once r has claimed it, and reports whether its agent runs.
// A row that is there already is written by writeClaim, a new one by its insert.
func (e *Engine) seize(tx Tx, r *run, d *Delegation) bool {
	from, now := d.State, tx.Now()
	d.Attempt++
	d.Holder, d.LeaseUntil = e.Node, now.Add(e.Config().Settings.Lease)
	d.Work.Breaker = e.breakerSettings()
	d.Work.ProcessWait, d.Work.Anew = false, false
	if from != Queued && from != Running {
		return false
	}
	r.token = newToken()
	d.TokenHash, d.State = HashToken(r.token), Running
	if from != Running {
		d.Since = now
	}
	d.StartedAt = cmp.Or(d.StartedAt, &now)
	spec, _ := e.Config().Agents.Get(d.To)
	d.ownedBy(spec.Owner)
	return true
}

// writeClaim writes what seize has changed, where the row still is as it was before.
func writeClaim(ctx context.Context, tx Tx, d *Delegation, from State) error {
	return tx.Move(ctx, d, from, d.Attempt-1)
}

// unclaim takes d from a run that ends before its work does: an agent's is queued, a
// check or a landing keeps its state, and so does what waits.
func unclaim(ctx context.Context, tx Tx, d *Delegation, ready time.Time) error {
	letGo(d)
	d.ReadyAt = ready
	if d.State != Running {
		return save(ctx, tx, d)
	}
	return move(ctx, tx, d, Queued)
}

// loseProcess leaves a row waiting alone whose process is gone with its node.
func loseProcess(ctx context.Context, tx Tx, d *Delegation) error {
	letGo(d)
	return save(ctx, tx, d)
}

// waitInProcess makes d wait while its process lives: it keeps its lease. forSpawned says
// that it waits for a child that it spawned.
func waitInProcess(ctx context.Context, tx Tx, d *Delegation, forSpawned bool) error {
	d.Work.ProcessWait, d.Work.ForSpawned = true, forSpawned
	return move(ctx, tx, d, Waiting)
}

// waitAlone makes d wait without a process, a slot or a folder.
func waitAlone(ctx context.Context, tx Tx, d *Delegation) error {
	letGo(d)
	return move(ctx, tx, d, Waiting)
}

// goOn lets the process of d go on, which waited for children.
func goOn(ctx context.Context, tx Tx, d *Delegation) error {
	d.Work.ProcessWait = false
	return move(ctx, tx, d, Running)
}

// wake queues d, which waits without a process for a child that has ended.
func wake(ctx context.Context, tx Tx, d *Delegation) error {
	d.ReadyAt = tx.Now()
	return move(ctx, tx, d, Queued)
}

// workAlone queues a program whose hand-over failed, so that it works by itself. The hop
// is of the run before, and no answer to this one.
func workAlone(ctx context.Context, tx Tx, d *Delegation, failed agent.Fallback) error {
	w := &d.Work
	if err := closeAsks(ctx, tx, d); err != nil {
		return err
	}
	w.Fallback, w.HandedTo, w.Refused = &failed, "", nil
	w.Runs++
	letGo(d)
	d.ReadyAt, d.Losses = tx.Now(), 0
	return move(ctx, tx, d, Queued)
}

// The transitions around people: what they are asked, and what they say.

// beginChecking stores the tree that the run of d has made, which goes on to check it.
func beginChecking(ctx context.Context, tx Tx, d *Delegation, tree string, rev patch.Revision, actor string) error {
	if err := keep(ctx, tx, d, tree, rev, actor); err != nil {
		return err
	}
	if err := closeAsks(ctx, tx, d); err != nil {
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
