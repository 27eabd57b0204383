package orchestrator

import (
	"cmp"
	"context"
	"fmt"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/record/event"
)

// A program hands over by a hop that is Final: its caller ends with what comes of it. The
// child, the caller's files as they are then, and Work.HandedTo are written in one
// transaction. The program is ended after that and the row waits alone, without a process,
// a slot or a folder; the run that its child's end queues starts nothing, and ends with the
// child's answer and both changes. Where the child failed the program may get its work back:
// see fallBack. A model hands over by parking instead.

// finalKey is the key of the hop that hands a run's work over: there is one at most, and
// asking again is answered with the child that there is.
const finalKey = "handoff"

// fitFinal completes a hop that hands the work over with what is known here about it.
func (r *run) fitFinal(ctx context.Context, h agent.Hop) (agent.Hop, error) {
	if !h.Final {
		return h, nil
	}
	d, err := r.e.Store.Delegation(ctx, r.id)
	if err != nil {
		return h, err
	}
	command := agent.Handover{}
	if h.Handover != nil {
		command = *h.Handover
	}
	command.Goto, command.Graph = cmp.Or(h.To, h.Capability), "parent"
	c := &command.Update.Context
	c.PreviousAgent, c.TaskDescription, c.Completed = d.To, h.Text, cmp.Or(c.Completed, h.Context["completed"])
	r.mu.Lock()
	retries := r.turnedDown
	r.mu.Unlock()
	command.Update.Metrics = agent.HandoverMetrics{TokensUsed: d.Usage.InputTokens + d.Usage.OutputTokens,
		TimeElapsed: int64((d.Work.RanFor + r.clock.elapsed()).Seconds()), RetryCount: retries}
	h.Handover, h.Ref, h.Spawn = &command, finalKey, false
	return h, nil
}

// handOff makes the hop that hands the work over. An agent that has ended makes none.
func (r *run) handOff(ctx context.Context, h agent.Hop) (agent.Child, error) {
	r.final.Lock()
	defer r.final.Unlock()
	r.mu.Lock()
	over := r.ended
	r.mu.Unlock()
	if over {
		return agent.Child{}, agent.ErrStopped
	}
	h, err := r.fitFinal(ctx, h)
	if err != nil {
		return agent.Child{}, err
	}
	r.filing.Lock()
	child, err := r.makeHop(ctx, h)
	r.filing.Unlock()
	if err == nil {
		r.handedOver(child)
	}
	return child, err
}

// keepFinal saves the checkout of a run that hands over. The caller holds r.filing.
func (r *run) keepFinal(ctx context.Context, p *planned) (*Checkpoint, []byte, *base, error) {
	if !p.Final || r.dir == "" || r.mirror == nil {
		return nil, nil, nil, nil
	}
	kept, bundle, err := r.saveFiles(ctx)
	if err != nil || p.repo != r.d.Repository {
		return kept, bundle, nil, err
	}
	from, err := r.baseOf(ctx, kept, bundle)
	return kept, bundle, from, err
}

// spawnedAtWork refuses to hand over while spawned agents work, which would end them.
func spawnedAtWork(d *Delegation, h agent.Hop) agent.Child {
	return notHandedOn(h, CodeConflict, fmt.Sprintf("Agents that %s spawned still work (%d), and a hand-over would end them. "+
		"Wait for them with gatehouse children --wait, then hand over.", d.To, d.OpenSpawned))
}

// handedOver notes what came of a hop that hands the work over. Where it was made, the agent
// is told to end, whatever it still does.
func (r *run) handedOver(child agent.Child) {
	r.mu.Lock()
	end := r.endAgent
	if child.State == agent.Refused {
		r.turnedDown++
		end = nil
	} else {
		r.handedTo = child.ID
	}
	r.mu.Unlock()
	if end != nil {
		end(agent.ErrHandedOver)
	}
}

// staff is the context of an agent: it ends with the run, and when the work was handed over.
func (r *run) staff() (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(r.ctx)
	r.mu.Lock()
	r.endAgent = end
	r.mu.Unlock()
	return ctx, end
}

// leaves reports whether the work was handed over; from now on it cannot be. A hop that is
// being made is waited for.
func (r *run) leaves() bool {
	r.final.Lock()
	defer r.final.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = r.handedTo == ""
	return !r.ended
}

// leave lets go of a row whose work was handed over and whose program has ended.
func (e *Engine) leave(r *run) error {
	r.mu.Lock()
	r.finished = true
	r.mu.Unlock()
	return e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		r.worked(d)
		ready := d.ReadyAt
		if d.State == Running { // the child has ended already and its end let this run go on
			ready = tx.Now()
		}
		return unclaim(ctx, tx, d, ready)
	})
}

// handedBack ends a delegation with what came of the child that its work was handed to.
func (e *Engine) handedBack(r *run, spec agent.Spec) error {
	if err := e.prepare(r, spec); err != nil {
		return err
	}
	d, err := e.Store.Delegation(r.ctx, r.d.Work.HandedTo)
	if err != nil {
		return err
	}
	c, err := r.takeIn(r.ctx, &d)
	switch {
	case err != nil:
		return err
	case !c.Ended:
		return e.handedStill(r)
	case d.State == Rejected || d.State == Expired: // people said no, or nothing in time: no failure of whoever handed over
		return agent.Fail(string(d.State), "%s", c.Error.Message)
	case d.State == Failed && e.Config().Settings.OptIn:
		return e.fallBack(r, &d, c.Error)
	case c.Error != nil:
		return c.Error
	}
	return e.finish(r, spec, withoutSecrets(c.Result))
}

// fallBack lets a program whose hand-over failed work once more by itself, told of the failure
// and from the files that it left: where hand-overs are brought in task by task, one that
// fails must not cost what worked without it (H29). It hands nothing on then, so this happens
// once. Where hand-overs are simply on, the program's answer is its target's, and so is the
// failure.
func (e *Engine) fallBack(r *run, child *Delegation, f *agent.Failure) error {
	return e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		r.worked(d)
		if err := workAlone(ctx, tx, d, agent.Fallback{To: child.To, ID: child.ID, Error: f}); err != nil {
			return err
		}
		return tx.Append(ctx, event.Of(d.ID, "gatehouse", event.QueuedData{Agent: d.To,
			Why: event.Given(fmt.Sprintf("the hand-over to %s failed, so %s works by itself now", child.To, d.To))}))
	})
}

// handedStill lets a row wait again that was claimed before the child had ended.
func (e *Engine) handedStill(r *run) error {
	return e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if d.OpenChildren == 0 {
			return unclaim(ctx, tx, d, tx.Now())
		}
		if err := waitAlone(ctx, tx, d); err != nil {
			return err
		}
		return tx.Append(ctx, waitingEvent(d))
	})
}

// rest lets go of the slot of a program that waits for a child which it spawned; with any
// other child the hop has done so.
func (r *run) rest(ctx context.Context, childID string) error {
	if !r.hasSlot() {
		return nil
	}
	return r.writeOnce(ctx, func(tx Tx, d *Delegation) error {
		child, err := tx.Delegation(ctx, childID)
		if err != nil || child.State.Ended() || d.State != Running {
			return err
		}
		if err := waitInProcess(ctx, tx, d, true); err != nil {
			return err
		}
		r.e.continuation(tx, r).rest()
		return tx.Append(ctx, waitingEvent(d))
	})
}
