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
		return "◆ Approval needed · hand-over to " + to
	case Expired:
		return "⌛ Expired, not approved · not handed to " + to
	case Failed:
		return "✕ Failed · not handed to " + to
	case Cancelled:
		return "⊘ Cancelled · not handed to " + to
	}
	switch r.State {
	case approval.Approved:
		return "✓ Approved · handed to " + to
	case approval.Rejected:
		return "⊖ Rejected · not handed to " + to
	}
	return fmt.Sprintf("◆ Approval needed · %d of %d so far", view.Needs.Have, view.Needs.Count)
}
