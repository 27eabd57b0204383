package webhook

import (
	"fmt"

	"gatehouse/approval"
)

// handed is the headline of a request about a hand-over.
func handed(n news, r approval.Request, view approval.CardView) string {
	to := foreign(r.Agent, slackText)
	switch n.kind {
	case Requested:
		return as(approval.Pending, "Approval needed · hand-over to "+to)
	case Expired:
		return as(approval.Expired, "Expired, not approved · not handed to "+to)
	case Failed:
		return as(approval.Failed, "Failed · not handed to "+to)
	case Cancelled:
		return as(approval.Cancelled, "Cancelled · not handed to "+to)
	}
	switch r.State {
	case approval.Approved:
		return as(approval.Approved, "Approved · handed to "+to)
	case approval.Rejected:
		return as(approval.Rejected, "Rejected · not handed to "+to)
	}
	return as(approval.Pending, fmt.Sprintf("Approval needed · %d of %d so far", view.Needs.Have, view.Needs.Count))
}
