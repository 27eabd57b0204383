package api

import "gatehouse/orchestrator/budget"

// Budget is the published shape of what a delegation may use and has used.
type Budget struct {
	Limits   any    `json:"limits"`   // {tokens, usd, handoffs, agents, time}; what is absent is not limited
	Used     any    `json:"used"`     // by its own run
	Settled  any    `json:"settled"`  // by what it handed on and that has ended
	Reserved any    `json:"reserved"` // for what it handed on and that is live
	Exceeded string `json:"exceeded,omitempty"`
}

func budgetOf(a *budget.Account) *Budget {
	if a == nil {
		return nil
	}
	return &Budget{Limits: a.Limits.Published(), Used: a.Used.Published(), Settled: a.Settled.Published(), Reserved: a.Reserved.Published(), Exceeded: a.Exceeded}
}
