package config

import (
	"cmp"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/budget"
)

// Defaults of the contract. A task's tokens and money are limited where nothing is
// written. Its running time and its agents are not: programs may rightly run long, and
// max_handoffs bounds how many there are.
const (
	defaultTokens   = 150_000
	defaultMicroUSD = 5_000_000
)

// limits reads what tasks may use and when agents rest.
func (b *builder) limits(s *orchestrator.Settings) {
	e := b.file.Engine
	tokens, usd := int64(defaultTokens), int64(defaultMicroUSD)
	s.Budget = budget.Limits{Tokens: &tokens, MicroUSD: &usd}
	if l := b.allowance(at("engine", "budget"), e.Budget); l != nil {
		s.Budget = over(*l, s.Budget)
	}
	s.Tiers = tiers()
	for name, tier := range e.Tiers {
		b.oneOf(at("engine", "tiers", name), name, budget.Simple, budget.Medium, budget.Complex)
		if l := b.allowance(at("engine", "tiers", name), tier); l != nil {
			s.Tiers[name] = over(*l, s.Tiers[name])
		}
	}
	s.OptIn = e.Handoffs == "opt_in"
	s.Classify = e.Complexity == "auto"
	s.Breaker = orchestrator.BreakerSettings{Failures: *e.Breaker.Failures, Cooldown: span(e.Breaker.Cooldown)}
	s.MaxRemote = *e.MaxRemote
}

// tiers are those of the hand-over protocol (H19–H21).
func tiers() map[string]budget.Limits {
	tier := func(handoffs int, tokens int64, agents int) budget.Limits {
		return budget.Limits{Handoffs: &handoffs, Tokens: &tokens, Agents: &agents}
	}
	return map[string]budget.Limits{budget.Simple: tier(0, 10_000, 1), budget.Medium: tier(2, 25_000, 3), budget.Complex: tier(5, 150_000, 5)}
}

// over is l with the fields of fallback where l has none.
func over(l, fallback budget.Limits) budget.Limits {
	return budget.Limits{
		Tokens: cmp.Or(l.Tokens, fallback.Tokens), MicroUSD: cmp.Or(l.MicroUSD, fallback.MicroUSD),
		Handoffs: cmp.Or(l.Handoffs, fallback.Handoffs),
		Agents:   cmp.Or(l.Agents, fallback.Agents), Time: cmp.Or(l.Time, fallback.Time),
	}
}
