package api

import (
	"gatehouse/orchestrator/budget"
	"gatehouse/web/wire"
)

func budgetOf(a *budget.Account) *wire.Budget {
	if a == nil {
		return nil
	}
	return &wire.Budget{Limits: a.Limits.Published(), Used: a.Used.Published(), Settled: a.Settled.Published(), Reserved: a.Reserved.Published(), Exceeded: a.Exceeded}
}
