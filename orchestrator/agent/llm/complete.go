package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/textcut"
)

// complete asks the model, and again with a shorter view while it says that the
// conversation is too long (P29).
func (c *conversation) complete(ctx context.Context) (model.Response, error) {
	messages := make([]agent.Message, 0, len(c.turns))
	for _, t := range c.turns {
		messages = append(messages, t.Message)
	}
	tools := make([]model.Tool, 0, len(c.tools))
	for _, t := range c.tools {
		tools = append(tools, t.Tool)
	}
	longest, err := c.reserve(ctx)
	if err != nil {
		return model.Response{}, err
	}
	n := len(c.turns) + 1
	var paid agent.Usage // for calls that failed
	for tier := 0; ; tier++ {
		v := c.view.tier(tier, messages)
		r, err := c.client.Complete(ctx, model.Request{System: c.system, Messages: v.of(messages), Tools: tools, MaxTokens: longest, Waits: c.waits(ctx)},
			func(d agent.Delta) {
				d.Turn = n
				c.host.Delta(d)
			})
		failed, ok := errors.AsType[*model.Error](err)
		if ok {
			paid = paid.Add(failed.Usage)
		}
		switch {
		case err == nil:
			c.view, r.Usage = v, r.Usage.Add(paid)
			return r, nil
		case ctx.Err() != nil:
			return r, context.Cause(ctx)
		case !ok:
			return r, err
		case failed.Kind == model.Overflow && tier < lastTier:
			c.log.Info("a conversation is too long for its model and is shown shorter", "delegation", c.job.DelegationID, "tier", tier+1)
		case failed.Kind == model.Overflow:
			return r, c.failedFor(ctx, paid, agent.CodeOverflow, "The conversation of %s is longer than its model takes, also after it was shortened. Send a smaller task, or give it a model that takes more. The provider said: %s", c.job.Agent.Name, failed.Message)
		default:
			return r, c.failedFor(ctx, paid, agent.CodeModel, "The model of %s could not answer: %v. Look at the provider's key and state, then retry.", c.job.Agent.Name, failed)
		}
	}
}

// waits shows why nothing comes while a call waits for its next try.
func (c *conversation) waits(ctx context.Context) func(*model.Error, time.Duration) {
	return func(failed *model.Error, wait time.Duration) {
		line := fmt.Sprintf("The model could not answer and is asked again in %s: %v", wait.Round(time.Second), failed)
		if err := c.host.Progress(ctx, textcut.Characters(line, interim)); err != nil {
			c.log.Debug("a wait could not be shown", "delegation", c.job.DelegationID, "err", err) // the next write of the run says so
		}
	}
}

// failedFor is a failure of the model, once what its calls cost is charged in place of what
// was reserved: else a caller
// could have an agent's broken model asked again and again for nothing.
func (c *conversation) failedFor(ctx context.Context, paid agent.Usage, code, format string, args ...any) error {
	err := c.host.Usage(ctx, paid)
	if _, over := errors.AsType[*agent.Failure](err); err != nil && !over { // the run fails in any case
		return err
	}
	return agent.Fail(code, format, args...)
}
