package task

import (
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"
)

// DelegationsPage is `/delegations`.
type DelegationsPage struct {
	views.Chrome
	Rows     []views.DelegationRow
	Filters  views.FilterBar
	Filtered bool          // the line says more than the one that the list begins with
	All      history.Count // tasks without a filter; counted where no row matches
	NextHref string        // older rows; empty at the end
	Later    bool          // this is not the first page
	Send     views.SendForm
}
