package orchestrator

import (
	"context"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/record/event"
)

// probeTime is how long a probe is waited for beyond its agent's own time limit. A probe
// is a delegation and ends some day; this only frees the agent where the row is stuck.
const probeTime = 5 * time.Minute

// probe makes a child the one probe of an agent that rests; the guards let it pass. One
// that people are asked about first is none yet: nobody else could try while they think.
func probe(ctx context.Context, tx Tx, b guard.Breaker, child *Delegation, target agent.Spec) error {
	if !b.Resting() || child.State == AwaitingApproval {
		return nil
	}
	return tx.PutBreaker(ctx, b.Try(tx.Now(), child.ID, tx.Now().Add(target.Timeout+probeTime)))
}

// probeAsked makes a hand-over that people said yes to the probe when it is first worked
// on. It works in any case, for people decided it; another probe that is under way stays.
func (e *Engine) probeAsked(ctx context.Context, tx Tx, d *Delegation) error {
	if !d.Work.Asked || d.State != Running || d.Attempt != 1 {
		return nil
	}
	b, err := tx.Breaker(ctx, d.To)
	if err != nil || !b.Resting() {
		return err
	}
	if b, err = tx.LockBreaker(ctx, d.To); err != nil || !b.MayProbe(tx.Now()) {
		return err
	}
	spec, _ := e.Config().Agents.Get(d.To)
	return probe(ctx, tx, b, d, spec)
}

// tellBreaker counts an end that says something about the agent (H11–H14): a failure, but
// not one of the budget nor of a plan's step, which counts for who did it, or a success. What people decided or stopped says nothing; a
// probe that ended so is given to the next. Events belong to the task that caused them.
func tellBreaker(ctx context.Context, tx Tx, d *Delegation) error {
	if d.Work.Reverts != "" {
		return nil // no agent ran
	}
	failed := d.State == Failed && d.Work.Breaker != nil && (d.Error == nil || d.Error.Code != agent.CodeBudget && d.Error.Code != agent.CodeStep)
	b, err := tx.Breaker(ctx, d.To)
	if err != nil || !failed && b.Probe != d.ID && (d.State != Completed || !b.Resting() && b.Failures == 0) {
		return err
	}
	if b, err = tx.LockBreaker(ctx, d.To); err != nil {
		return err
	}
	next := b.Drop(tx.Now(), d.ID)
	switch {
	case failed:
		reason := ""
		if d.Error != nil {
			reason = d.Error.Message
		}
		next = b.Fail(tx.Now(), reason, d.Work.Breaker.Failures, d.Work.Breaker.Cooldown)
	case d.State == Completed:
		next = b.Succeed(tx.Now())
	}
	if err := tx.PutBreaker(ctx, next); err != nil {
		return err
	}
	return breakerEvent(ctx, tx, d, b, next)
}

// breakerEvent writes that a breaker opened, again after a probe too, or closed.
func breakerEvent(ctx context.Context, tx Tx, d *Delegation, was, is guard.Breaker) error {
	switch {
	case is.State == guard.Open && was.State != guard.Open:
		said := event.BreakerOpenedData{Agent: d.To, Failures: is.Failures, Until: is.Until, Reason: is.Reason}
		return tx.Append(ctx, event.Of(d.ID, "gatehouse", said))
	case is.State == guard.Closed && was.Resting():
		return tx.Append(ctx, event.Of(d.ID, "gatehouse", event.BreakerClosedData{Agent: d.To}))
	}
	return nil
}

// breakers returns the breakers of all agents that ever failed, by the agent's name.
func (e *Engine) breakers(ctx context.Context) (map[string]guard.Breaker, error) {
	all, err := e.Store.BreakerStates(ctx)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]guard.Breaker, len(all))
	for _, b := range all {
		byName[b.Agent] = b
	}
	return byName, nil
}
