package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"gatehouse/approval"
)

// The kinds of messages; a kind is the type of a Standard Webhook.
const (
	Requested        = "approval.requested"
	Revised          = "approval.revised" // asked again, with a new revision
	Decided          = "approval.decided" // any verdict but changes; see the state for whether it settled it
	ChangesRequested = "approval.changes_requested"
	Expired          = "approval.expired"
	Stale            = "approval.stale"
	Landed           = "approval.landed"
	Reverted         = "approval.reverted"
	Failed           = "approval.failed"
	Cancelled        = "approval.cancelled"
	Superseded       = "approval.superseded"
	GrantRevoked     = "approval.grant_revoked" // a call that was approved for the rest of its task
)

// news is what there is to say of a request as it stands.
type news struct {
	id   string // equal for what was said before
	kind string
	at   time.Time
}

// newsOf says what is new about r. A request's version also rises with what nobody
// needs to be told of, such as a reminder. So the id is made of what can be read in
// a message and not of the version: then a version without news repeats the id of
// the one before, and receivers drop it.
func newsOf(r approval.Request, now time.Time) news {
	n := news{kind: kindOf(r), at: now}
	settled := ""
	if r.DecidedAt != nil {
		settled = strconv.FormatInt(r.DecidedAt.UnixMicro(), 10)
	}
	what := fmt.Appendf(nil, "%s %s %d %d %s", r.ID, r.State, r.Revision.N, len(r.Decisions), settled)
	if n.kind == GrantRevoked {
		what = append(what, " revoked"...)
	}
	sum := sha256.Sum256(what)
	n.id = "msg_" + hex.EncodeToString(sum[:16])
	switch n.kind {
	case Requested, Revised:
		n.at = r.Revision.At
	case GrantRevoked:
		_, n.at = r.Revoked()
	case Decided, ChangesRequested, Expired:
		if d := current(r); len(d) > 0 {
			n.at = d[len(d)-1].At
		}
		if r.DecidedAt != nil {
			n.at = *r.DecidedAt
		}
	}
	return n
}

func kindOf(r approval.Request) string {
	if by, _ := r.Revoked(); by != "" {
		return GrantRevoked
	}
	switch r.State {
	case approval.Pending:
		switch {
		case len(current(r)) > 0:
			return Decided
		case r.Revision.N > 1:
			return Revised
		}
		return Requested
	case approval.Approved, approval.Rejected, approval.Answered:
		return Decided
	case approval.ChangesRequested:
		return ChangesRequested
	case approval.Expired:
		return Expired
	case approval.Stale:
		return Stale
	case approval.Landed:
		return Landed
	case approval.Reverted:
		return Reverted
	case approval.Failed:
		return Failed
	case approval.Cancelled:
		return Cancelled
	default:
		return Superseded
	}
}

// current lists the decisions on the current revision, oldest first.
func current(r approval.Request) []approval.Decision {
	var list []approval.Decision
	for _, d := range r.Decisions {
		if d.Revision == r.Revision.N {
			list = append(list, d)
		}
	}
	return list
}

// clip cuts s after n characters and says so.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n == 1 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
