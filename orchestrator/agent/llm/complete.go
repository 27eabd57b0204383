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

// usualAnswer is the longest answer that is reckoned with where an agent says none, in
// tokens. It is what the Messages API is asked for, too.
const usualAnswer = 8192

// longestAnswer is how long an answer of an agent's model may be, in tokens.
func longestAnswer(spec agent.Spec) int64 {
	if spec.MaxTokens > 0 {
		return spec.MaxTokens
	}
	return usualAnswer
}

// CallCost says what the first call for text may cost: what is sent, with about four bytes
// to a token, and the longest answer. Tools of MCP servers are not known before a run.
func (r *Runner) CallCost(spec agent.Spec, text string) (input, output int64) {
	c := &conversation{job: agent.Job{Agent: spec, Text: text, From: "caller"}}
	if spec.Repository != "" {
		c.job.Dir = "checkout"
	}
	bytes := len(text) + len(spec.Prompt) + len(c.where())
	for _, t := range c.builtIn() {
		if Allowed(spec.Tools, t.Name) {
			bytes += len(t.Name) + len(t.Description) + len(t.Schema)
		}
	}
	return int64(bytes/4 + 1), longestAnswer(spec)
}

// sent is about how many tokens the conversation has as it would be sent now.
func (c *conversation) sent() int64 {
	n := len(c.system)
	for _, t := range c.turns {
		n += weight(t.Message)
	}
	for _, t := range c.tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return int64(n/4 + 1)
}

// reserve reserves the next call and returns how long its answer may be. Where nothing caps
// it, it stays as the agent says, 0 being the provider's own choice.
func (c *conversation) reserve(ctx context.Context) (int64, error) {
	asked := longestAnswer(c.job.Agent)
	given, err := c.host.Reserve(ctx, agent.ModelCall{Input: c.sent(), Output: asked})
	if err != nil || given < asked {
		return given, err
	}
	return c.job.Agent.MaxTokens, nil
}
