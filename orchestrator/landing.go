package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// Times of landing.
const (
	// landTries bounds how often one claim plans anew because the branch moves on.
	landTries = 5
	// heldBack parks a landing that waits for a person's Retry: somebody has to change the
	// configuration or the repository's rights.
	heldBack = 100 * 365 * 24 * time.Hour
)

// land carries out the yes: it commits the intent, then moves the ref with the old
// value as its lease. Done again after a crash it finds out how far it came.
func (e *Engine) land(r *run) error {
	o := r.d.Work.Land
	if o == nil {
		return fmt.Errorf("delegation %s is landing without an order", r.id)
	}
	if o.Intent == nil {
		// A node with older rules would plan, and ask again, by settings that nobody wants.
		if _, err := e.landings(r.ctx); err != nil {
			return e.heldUp(r, err)
		}
	}
	var err error
	if r.mirror, _, err = e.mirror(r.d.Repository); err != nil {
		return err
	}
	if err := r.bring(r.ctx, o.Bundle, o.Commit); err != nil {
		return e.heldUp(r, err)
	}
	done, err := e.landingTurns.take(r.ctx, r.d.Repository)
	if err != nil {
		return err
	}
	defer done()
	for range landTries {
		if o.Intent == nil {
			if err := e.intend(r, o); err != nil && !errors.Is(err, errOthers) {
				return e.heldUp(r, err)
			} else if err == nil && o.Intent == nil {
				return nil // asked again
			}
		} else if done, err := e.recoverLanding(r, o); done || err != nil {
			return e.heldUp(r, err)
		}
		if o.Intent == nil {
			continue // the base moved away from the intent
		}
		err := r.mirror.Land(r.ctx, *o.Intent, r.mayPush)
		if _, ok := errors.AsType[*patch.Moved](err); ok {
			if err := e.setIntent(r, o, nil); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return e.heldUp(r, err)
		}
		e.Trace("ref moved")
		return e.landed(r, o)
	}
	return e.heldUp(r, fmt.Errorf("%s moved %d times while the change was landing", o.Base.Branch, landTries))
}

// mayPush is the fence right before a push, which nothing takes back: a node that slept since
// it claimed the landing, or since it wrote the intent, finds its lease over or the row with
// another one. It steps back then, and whoever has the row goes on from the intent.
func (r *run) mayPush(ctx context.Context) error {
	d, err := r.e.Store.Delegation(ctx, r.id)
	if err != nil {
		return err
	}
	if d.State != Landing || d.Attempt != r.attempt || d.Holder != r.e.Node || !d.LeaseUntil.After(r.e.Now()) {
		return fmt.Errorf("delegation %s is %s at attempt %d, leased to %q until %s; nothing was pushed: %w",
			d.ID, d.State, d.Attempt, d.Holder, d.LeaseUntil.UTC().Format(time.RFC3339), ErrLost)
	}
	return nil
}

// recoverLanding looks how far the push of a recorded intent came.
func (e *Engine) recoverLanding(r *run, o *Order) (bool, error) {
	outcome, err := r.mirror.Landed(r.ctx, *o.Intent)
	if err != nil {
		return false, err
	}
	switch outcome {
	case patch.Landed:
		return true, e.landed(r, o)
	case patch.BaseMoved:
		return false, e.setIntent(r, o, nil)
	default:
		return e.meantStill(r, o)
	}
}

// meantStill asks of an intent that is not pushed yet what was asked when it was written: one
// that was refused or could not be sent may be days old, and whoever said yes may be gone, or
// the rules stricter. done is true where it is asked again; an intent that no longer fits is
// taken back, and planned anew.
func (e *Engine) meantStill(r *run, o *Order) (done bool, err error) {
	if why, err := e.outdated(r, o); err != nil { // nothing was pushed, so a cancel is possible, which it names
		return false, cmp.Or(e.setIntent(r, o, nil), err)
	} else if why != "" {
		return true, e.stale(r, o, why, nil)
	}
	in := *o.Intent
	o.Intent = nil
	err = e.commitIntent(r, o, in)
	if errors.Is(err, errOthers) {
		return false, nil
	}
	return err == nil && o.Intent == nil, err
}

// intend plans the landing and commits the intent. When the base moved so that the
// approval does not carry over, or too few yeses count any more, the change is asked again
// and no intent is set. After errOthers it is to be planned anew.
func (e *Engine) intend(r *run, o *Order) error {
	if why, err := e.outdated(r, o); err != nil {
		return err
	} else if why != "" {
		return e.stale(r, o, why, nil)
	}
	intent, err := r.mirror.PlanLanding(r.ctx, patch.LandSpec{
		Base: o.Base, Commit: o.Commit, Branch: r.d.Work.AgentBranch, Tree: o.Tree, Title: Title(r.task.Text), Task: r.task.ID, Delegation: r.id,
		Agent: r.d.To, Digest: o.Digest, Requester: r.task.Requester, Editors: r.d.Work.editorNames(), Approvers: o.Approvers, At: e.Now().UTC()})
	if moved, ok := errors.AsType[*patch.Moved](err); ok {
		return e.stale(r, o, moved.Error(), moved)
	}
	if err != nil {
		return err
	}
	if intent.Carried {
		ok, why, err := e.checksPass(r, intent)
		if err != nil {
			return err
		}
		if !ok {
			return e.stale(r, o, why, nil)
		}
	}
	e.Trace("landing planned")
	if err := e.commitIntent(r, o, intent); err != nil || o.Intent == nil {
		return err
	}
	e.Trace("intent committed")
	return nil
}

// checksPass runs the checks again on the tree that would land on the moved base.
func (e *Engine) checksPass(r *run, in patch.Intent) (bool, string, error) {
	_, repo, err := e.mirror(r.d.Repository)
	if err != nil {
		return false, "", err
	}
	checks, err := e.runChecks(r, in.Onto.Commit, in.Tree, repo)
	if err != nil {
		return false, "", err
	}
	for _, c := range checks {
		if !c.OK {
			return false, fmt.Sprintf("%s moved, and on it the check %q fails now.", in.Onto.Branch, c.Command), nil
		}
	}
	return true, "", nil
}

// setIntent writes the intent, or takes it back, before anything else is done.
func (e *Engine) setIntent(r *run, o *Order, in *patch.Intent) error {
	return e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if d.State != Landing || d.Work.Land == nil {
			return ErrLost
		}
		o.Intent = in
		return putIntent(ctx, tx, d, in)
	})
}

// putIntent is setIntent inside its transaction.
func putIntent(ctx context.Context, tx Tx, d *Delegation, in *patch.Intent) error {
	d.Work.Land.Intent = in // what held it up stands until it has landed, or something else does
	return save(ctx, tx, d)
}

// landed records that the ref has moved.
func (e *Engine) landed(r *run, o *Order) error {
	err := e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		res := agent.Result{}
		if d.Result != nil {
			res = *d.Result
		}
		res.Commit, res.Declined = o.Intent.Merge, d.Work.Declined
		if o.Intent.Deliver == patch.DeliverBranch {
			res.Pushed = o.Intent.Branch()
		}
		d.Result, d.Work.Problem = &res, ""
		said := event.PatchLandedData{Commit: o.Intent.Merge, Repository: d.Repository, Branch: o.Intent.Branch(),
			Deliver: cmp.Or(o.Intent.Deliver, patch.DeliverMerge), Digest: o.Digest, ApprovedBy: o.Approvers,
			CarriedOver: o.Intent.Carried, Declined: d.Work.Declined, Reverts: d.Work.Reverts}
		if err := tx.Append(ctx, event.Of(d.ID, "gatehouse", said)); err != nil {
			return err
		}
		if err := tx.CloseRequest(ctx, d.ID, RequestLanded, o.Intent.Merge); err != nil {
			return err
		}
		return Succeed(ctx, tx, d)
	})
	if err == nil {
		e.Trace("landed")
	}
	return err
}

// heldUp deals with a landing that could not be done now. The approval stands, and it is
// tried again, also where somebody's work is in the way: they may have moved it. Only a
// source that cannot be used as it is configured waits for a person's Retry.
func (e *Engine) heldUp(r *run, err error) error {
	if err == nil || errors.Is(err, ErrLost) || r.ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*agent.Failure](err); ok {
		return err
	}
	var dirty *patch.DirtyFolder
	var refused *patch.Rejected
	var source *patch.SourceError
	wait := e.Backoff << min(r.d.Losses, 6)
	people := errors.As(err, &dirty)
	if errors.As(err, &source) && !source.Temporary() {
		people, wait = true, heldBack
	}
	if strings.TrimSpace(err.Error()) != r.d.Work.Problem {
		e.Log.Warn("a landing is held up", "delegation", r.id, "err", err)
	}
	return e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if d.State != Landing {
			return ErrLost
		}
		problem := strings.TrimSpace(err.Error())
		said := d.Work.Problem == problem
		d.Work.Problem = problem
		if (dirty != nil || errors.As(err, &refused)) && d.Work.Land != nil {
			d.Work.Land.Intent = nil // nothing was pushed, so a cancel is still possible
		}
		d.Losses++
		letGo(d)
		d.ReadyAt = tx.Now().Add(wait)
		if err := save(ctx, tx, d); err != nil || said {
			return err
		}
		if err := tx.ShowLanding(ctx, d.ID); err != nil {
			return err
		}
		return tx.Append(ctx, event.Of(d.ID, "gatehouse", event.ProgressData{
			Text: "Landing waits: " + problem, Code: event.LandingHeld, Retry: event.Given(people)}))
	})
}

// stale asks again: what was approved does not fit the branch as it is now. Where
// git can combine both, the combined tree is the new revision; else the agent works
// again on the new base. Either way people see the difference and decide anew.
func (e *Engine) stale(r *run, o *Order, why string, moved *patch.Moved) error {
	head, err := r.mirror.Branch(r.ctx, o.Base.Target())
	if err != nil {
		return err
	}
	tree, clean, err := r.mirror.Merged(r.ctx, o.Base.Tree, o.Tree, head.Tree)
	if err != nil {
		return err
	}
	over := patch.Overtaken{Branch: head.Branch, Head: head.Commit, Why: patch.Clause(why)}
	if moved != nil {
		over = moved.Overtaken()
	}
	var rev patch.Revision
	if clean && tree != head.Tree {
		w := &r.d.Work
		w.Stand = standOn(patch.Start{Base: head})
		_, repo, err := e.mirror(r.d.Repository)
		if err != nil {
			return err
		}
		spec, _ := e.Config().Agents.Get(r.d.To)
		if err := r.mirror.Validate(r.ctx, head.Tree, tree, patch.Rules{Writes: spec.Writes, Protect: repo.Protect}); err != nil {
			return err
		}
		if rev, _, err = e.record(r, tree); err != nil {
			return err
		}
	}
	return e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		err := errors.Join(
			tx.Overtaken(ctx, d.ID, over),
			tx.CloseRequest(ctx, d.ID, RequestStale, ""),
			tx.Append(ctx, event.Of(d.ID, "gatehouse", event.StaleData{Message: why, OldBase: o.Base.Commit, NewBase: head.Commit,
				Branch: head.Branch, Revision: o.Revision, Digest: o.Digest})))
		switch {
		case err != nil:
			return err
		case rev.Commit != "":
			return followBase(ctx, tx, d, head, tree, rev)
		case d.Work.Reverts != "":
			return Fail(ctx, tx, d, agent.Fail(CodeStale, "%s moved so that this can no longer be undone by itself. Undo it by a new task.", o.Base.Branch))
		case d.Work.pinned():
			return Fail(ctx, tx, d, agent.Fail(CodeStale, "%s moved so that this change does not fit it any more, and people said yes to the work on the branch as it was. Retry the task to ask again.", o.Base.Branch))
		default:
			return RunAgain(ctx, tx, d, d.Work.renewal(), "gatehouse", why)
		}
	})
}

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
	var now []string // who approves, where that has changed
	planned := o.Approvers
	err = e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		now, o.Intent = nil, nil
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
			if slices.ContainsFunc(planned, func(name string) bool { return !slices.Contains(names, name) }) {
				now = names
				d.Work.Land.Approvers, d.Work.Land.Intent = names, nil
				return save(ctx, tx, d)
			}
		}
		o.Intent = &in
		return putIntent(ctx, tx, d, &in)
	})
	if err == nil && now != nil {
		o.Approvers = now
		return errOthers
	}
	return err
}
