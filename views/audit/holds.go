package audit

import (
	"gatehouse/orchestrator/record/retention"
	"gatehouse/views"
)

// HoldsPage is `/audit/holds`.
type HoldsPage struct {
	views.Chrome
	Flash   *views.Flash // of a form that was not taken; its values stand in What, Subject and Reason
	Holds   []retention.Hold
	Lifted  bool // those that were lifted are listed, too
	MaySet  bool
	What    string // id, repository or everything
	Subject string
	Reason  string
	Rules   []string // what retention removes here, in sentences
}
