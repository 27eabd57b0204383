package orchestrator

import (
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
)

// limits are those of a new task: the least of the settings', the tier's, the agent's own
// and what was asked for. Without a complexity no tier applies.
func (c *Config) limits(s Submission, spec agent.Spec) (budget.Limits, budget.Class) {
	class := budget.Class{Tier: s.Complexity}
	if s.Complexity == budget.Auto || s.Complexity == "" && c.Settings.Classify && s.Text != "" {
		class = budget.Classify(s.Text)
	}
	all := []*budget.Limits{&c.Settings.Budget, spec.Budget, s.Budget}
	if tier, ok := c.Settings.Tiers[class.Tier]; ok {
		all = append(all, &tier)
	}
	return budget.Least(all...), class
}

// opened is the account of a task's first delegation.
func opened(l budget.Limits, spec agent.Spec) *budget.Account {
	return &budget.Account{Limits: l, Team: []string{agent.Key(spec.Name)}}
}

// budgetAnew is the account of a task that runs again: a person asked for it, so it has
// its whole budget, as the settings are now.
func (e *Engine) budgetAnew(t *Task) *budget.Account {
	c := e.Config()
	spec, _ := c.Agents.Get(t.Agent)
	limits, _ := c.limits(Submission{Complexity: t.Complexity, Budget: t.Budget}, spec)
	return opened(limits, agent.Spec{Name: t.Agent})
}

func newChain(c *Config) chain.Chain { return chain.New(c.Settings.MaxDepth) }
