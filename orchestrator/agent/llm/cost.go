package llm

import (
	"context"

	"gatehouse/orchestrator/agent"
)

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
