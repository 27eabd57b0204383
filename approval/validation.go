package approval

import (
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/origin"
)

// judge says whether the ballot counts on r as it is now, and if not, why. The
// order is part of the contract: right, deadline, decided already, revision and digest,
// ticks.
func judge(e Electorate, r Request, b Ballot, now time.Time, zone *time.Location) *orchestrator.Error {
	e = e.at(now, zone)
	if refused := e.May(b.Principal, r, b.Verdict); refused != nil {
		return refused
	}
	if refused := r.subject().takes(r, b); refused != nil {
		return refused
	}
	w := words{zone: zone, now: now}
	switch {
	case r.State == Expired || r.overdue(now):
		return w.expired(r, b.Verdict)
	case r.State == Superseded:
		return w.revising(r, b.Verdict)
	case b.Verdict == Withdraw:
		return w.mayWithdraw(r, b)
	case r.State == Stale:
		return orchestrator.Errorf(orchestrator.CodeStale, "%s moved and this change no longer applies as approved. It is asked again with the difference. Your %s was not counted.", r.Revision.Base.Branch, noun(b.Verdict))
	case r.State != Pending:
		return w.decided(r, b.Verdict)
	case !r.current(b):
		return notShown(r)
	case b.Verdict == Approve:
		if refused := w.twice(e, r, b); refused != nil {
			return refused
		}
		if refused := r.notHere(b.Channel); refused != nil {
			return refused
		}
		if refused := needsPage(r, b.Channel); refused != nil {
			return refused
		}
		return notTicked(r, b)
	}
	return nil
}

// needsPage refuses a yes to a careful request from a place that cannot show all of
// it, such as the button of an old message. The command line and programs read the
// whole patch.
func needsPage(r Request, channel origin.Channel) *orchestrator.Error {
	risk := RiskOf(r)
	if risk.Level == Plain {
		return r.tooLongFor(channel)
	}
	if channel.ShowsWhole() {
		return nil
	}
	where := "diff"
	if !r.IsPatch() {
		where = "page"
	}
	return orchestrator.Errorf(orchestrator.CodeForbidden, "To approve this, open the %s: %s. It can be rejected here.", where, strings.Join(risk.Reasons, ", "))
}

// notHere refuses a yes from a channel that the agent's mode leaves out. The page, the
// command line and programs are always let in.
func (r Request) notHere(channel origin.Channel) *orchestrator.Error {
	if r.shownIn(channel) {
		return nil
	}
	where := "the web"
	if mode := origin.Channel(r.Mode); mode.HasCards() {
		where += " or" + On(mode)
	}
	return orchestrator.Errorf(orchestrator.CodeForbidden, "%s approved on %s. This can be rejected here.", r.subject().whose(r), where)
}

// overdue reports whether the stored deadline of a question has come.
func (r Request) overdue(now time.Time) bool {
	return r.State == Pending && r.ExpiresAt != nil && !r.ExpiresAt.After(now)
}

// words phrases answers that name times.
type words struct {
	zone *time.Location
	now  time.Time
}

// at is a time within a sentence; the day is left out when it is today.
func (w words) at(t time.Time) string {
	t, now := t.In(w.zone), w.now.In(w.zone)
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04 MST")
	}
	return t.Format("2006-01-02 15:04 MST")
}

func (w words) expired(r Request, v Verdict) *orchestrator.Error {
	when := "before the deadline"
	if r.ExpiresAt != nil {
		when = "before the deadline, " + w.at(*r.ExpiresAt)
	}
	return orchestrator.Errorf(orchestrator.CodeExpired, "Nobody decided %s, so this request expired and %s. Your %s was not counted. Send the task again if it is still wanted.", when, r.subject().unasked(r), noun(v))
}

// decided says who decided what, or how the request ended without a decision.
func (w words) decided(r Request, v Verdict) *orchestrator.Error {
	d := r.last()
	if d == nil || r.State == Cancelled || (d.Verdict == Approve && len(r.yes()) < r.Rule.Need) {
		return orchestrator.Errorf(orchestrator.CodeEnded, "This request is %s: its task ended before a decision. Your %s was not counted.", r.State, noun(v))
	}
	return orchestrator.Errorf(orchestrator.CodeAlreadyDecided, "%s Your %s was not counted.", w.did(*d), noun(v))
}

// twice refuses a second yes of one person, or from one seat.
func (w words) twice(e Electorate, r Request, b Ballot) *orchestrator.Error {
	u := b.Principal.User
	mine, _ := e.seatOf(u, r)
	for _, d := range e.yes(r) {
		var said, once string
		switch {
		case d.UserID == u.ID:
			said, once = fmt.Sprintf("You (%s) approved this at %s%s", d.By(), w.at(d.At), On(d.Channel)), "a person counts once"
		case d.seat() != mine.owner.ID:
			continue
		case mine.owner.ID == u.ID:
			said, once = fmt.Sprintf("%s approved this for you at %s%s", d.User, w.at(d.At), On(d.Channel)), "a seat counts once"
		default:
			said, once = fmt.Sprintf("%s, for whom you decide, has a yes of %s at %s%s", mine.owner.Name, d.User, w.at(d.At), On(d.Channel)), "a seat counts once"
		}
		return orchestrator.Errorf(orchestrator.CodeAlreadyDecided, "%s; %s. It needs %d more: %s.", said, once, r.Rule.Need-len(e.yes(r)), e.who(r))
	}
	return nil
}

// mayWithdraw checks that there is a yes of this person that can be taken back.
func (w words) mayWithdraw(r Request, b Ballot) *orchestrator.Error {
	if r.State != Pending && r.State != Approved {
		if r.State == Landed || r.State == Reverted {
			return orchestrator.Errorf(orchestrator.CodeAlreadyDecided, "%s It has landed, so nothing can be withdrawn. Revert it instead.", w.last(r))
		}
		return w.decided(r, b.Verdict)
	}
	if !r.current(b) {
		return notShown(r)
	}
	for _, d := range r.yes() {
		if d.UserID == b.Principal.User.ID {
			return nil
		}
	}
	return orchestrator.Errorf(orchestrator.CodeConflict, "You have not approved this revision, so there is nothing to withdraw.")
}

// last is what the newest verdict was, as a sentence; "" without one.
func (w words) last(r Request) string {
	if d := r.last(); d != nil {
		return w.did(*d)
	}
	return ""
}

// did is a decision as a sentence: who, what, when, where, why.
func (w words) did(d Decision) string {
	who := d.By().String()
	if rule, ok := d.ByRule(); ok {
		who = "Rule " + rule
	}
	what := badge.Did(d.Verdict, "this")
	if n := len(d.Files); d.Verdict == Approve && n > 0 {
		what = fmt.Sprintf("approved %d %s of this", n, plural(n, "file", "files"))
	}
	s := fmt.Sprintf("%s %s at %s%s", who, what, w.at(d.At), On(d.Channel))
	if d.Comment != "" {
		return fmt.Sprintf("%s: %q.", s, orchestrator.Title(d.Comment))
	}
	return s + "."
}

// last is the newest verdict on the current revision that was not taken back.
func (r Request) last() *Decision {
	yes := r.yes()
	for i := len(r.Decisions) - 1; i >= 0; i-- {
		d := r.Decisions[i]
		if d.Revision == r.Revision.N && (d.Verdict == Reject || d.Verdict == RequestChanges || d.Verdict == Edit || d.Verdict == Respond) {
			return &d
		}
	}
	if len(yes) > 0 {
		return &yes[len(yes)-1]
	}
	return nil
}

func noun(v Verdict) string {
	switch v {
	case Approve:
		return "approval"
	case Reject:
		return "rejection"
	case RequestChanges:
		return "request for changes"
	case Edit:
		return "edit"
	case Withdraw:
		return "withdrawal"
	case Respond:
		return "answer"
	}
	return string(v)
}

// On says where a decision was made, with a blank before it; a rule decides nowhere.
func On(c origin.Channel) string {
	if c.Said() == "" {
		return ""
	}
	return " " + c.Said()
}
