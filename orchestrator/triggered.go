package orchestrator

import (
	"context"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
)

// triggered says what holds for a task that a webhook or a schedule makes: nobody asked for
// it at that moment, so ask_first and the rules about hand-overs hold as they do between
// agents. A person's own task asks nobody. A rule that denies is an *Error.
func (e *Engine) triggered(ctx context.Context, t *Task, root *Delegation, spec agent.Spec) (Handovers, HandoverRule, error) {
	if !t.ByTrigger() {
		return nil, HandoverRule{}, nil
	}
	asks, err := e.handovers(ctx, spec.AskFirst)
	if err != nil {
		return nil, HandoverRule{}, err
	}
	rule := ruled(asks, e.Now(), t, root, rootHanded(t, root), spec.AskFirst)
	if rule.Deny {
		return nil, rule, Errorf(guard.CodeHumanRefused, "The rule %q does not let %s hand work to %s. Name another agent in the trigger, or change the rule.", rule.Name, t.Via, spec.Name)
	}
	return asks, rule, nil
}

// rootHanded is the task of a trigger as a hand-over: it starts on the branch, so no files
// travel.
func rootHanded(t *Task, root *Delegation) Handed {
	return Handed{Question: Question{From: t.Via.String(), To: root.To, Text: root.Text}}
}

// askRoot puts the task of a trigger before people, in the transaction that makes it, or
// that runs it again.
func (e *Engine) askRoot(ctx context.Context, tx Tx, asks Handovers, root *Delegation, spec agent.Spec) error {
	return asks.Ask(ctx, tx, root, rootHanded(tx.Task(), root), spec.AskFirst)
}

// askedAnew says what holds for running a root again. What a trigger started is asked
// about each time: its owner's wish is what the question is about, so that wish, told
// again by Retry, is no answer to it. d is a root, or nothing is asked.
func (e *Engine) askedAnew(ctx context.Context, d *Delegation) (agent.Spec, Handovers, HandoverRule, error) {
	spec, ok := e.Config().Agents.Get(d.To)
	if !ok || d.ParentID != "" || !d.State.Ended() {
		return spec, nil, HandoverRule{}, nil
	}
	t, err := e.Store.Task(ctx, d.TaskID)
	if err != nil {
		return spec, nil, HandoverRule{}, err
	}
	asks, rule, err := e.triggered(ctx, &t, d, spec)
	return spec, asks, rule, err
}
