package telegram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/each"
)

// ended is the card of a request that takes no verdict: how it ended, who said so.
func (f face) ended() *sheet {
	s := &sheet{}
	icon := iconOf(f.r.State)
	if f.r.IsAction() && f.r.State == approval.Approved { // nothing lands
		icon = badge.Of(f.r.State).Mark
	}
	s.as(asBold, cut(icon+" "+f.outcome(), firstLimit))
	f.title(s)
	f.because(s)
	if f.r.State == approval.Failed || f.view.Held != "" {
		f.open(s) // else nothing is left to do there
	}
	return s
}

// outcome is the first line without its icon.
func (f face) outcome() string {
	switch {
	case f.r.IsHandover():
		return f.handed()
	case f.r.IsAction():
		return f.called()
	case f.r.IsQuestion():
		return f.heard()
	}
	delivery := f.r.Revision.Delivery().As(name)
	switch f.r.State {
	case approval.Approved:
		if f.view.Held != "" {
			return "Approved · landing waits"
		}
		if f.r.Missed() != "" {
			return "Approved · nothing landed"
		}
		return "Approved · landing"
	case approval.Landed:
		return "Approved · " + delivery.Done()
	case approval.Rejected:
		return "Rejected · nothing landed"
	case approval.ChangesRequested:
		return "Changes requested · " + name(f.r.Agent) + " works on it again"
	case approval.Expired:
		return "Expired, not approved · nothing landed"
	case approval.Superseded:
		return "Replaced by a new revision · buttons are off"
	case approval.Stale:
		return "Stale · " + delivery.Target + " moved, so it is asked again"
	case approval.Reverted:
		return "Reverted · it had landed on " + delivery.Target
	case approval.Failed:
		return "Failed · nothing landed"
	case approval.Cancelled:
		return "Cancelled · nothing landed"
	default:
		return strings.ReplaceAll(string(f.r.State), "_", " ")
	}
}

// because is who decided, and what became of it.
func (f face) because(s *sheet) {
	switch f.r.State {
	case approval.Approved:
		f.said(s)
		f.made(s)
		f.granted(s)
		if missed := f.r.Missed(); missed != "" {
			s.line(cut(oneLine(missed), lineLimit))
		}
		if f.view.Held != "" {
			s.line()
			s.as(asCode, cut(oneLine(f.view.Held), textLimit))
		}
	case approval.Landed:
		f.said(s)
		f.made(s)
		s.line("commit ")
		s.as(asCode, first(f.r.Landed, 7))
		if f.r.DecidedAt != nil && f.r.DecidedAt.After(f.r.CreatedAt) {
			s.put(" · took ", long(f.r.DecidedAt.Sub(f.r.CreatedAt)))
		}
	case approval.Rejected, approval.ChangesRequested:
		f.against(s)
	case approval.Answered:
		f.reply(s)
	case approval.Expired:
		end := f.clock.now
		if f.r.DecidedAt != nil {
			end = *f.r.DecidedAt
		}
		got := "no decision"
		if yes := len(standing(f.r)); yes > 0 {
			got = fmt.Sprintf("%d of %d yes", yes, f.r.Rule.Need)
		}
		s.line(fmt.Sprintf("asked %s ago, %s, %s", long(end.Sub(f.r.Revision.At)), plural(f.r.Reminded, "reminder", "reminders"), got))
	case approval.Reverted:
		s.line("commit ")
		s.as(asCode, first(f.r.Landed, 7))
		if f.r.RevertedBy != "" {
			s.put(" was undone by ")
			s.as(asCode, "apr_…"+shortID(f.r.RevertedBy))
		}
	case approval.Failed:
		s.line("Its page says why, and can try again.")
	case approval.Stale:
		if yes := standing(f.r); len(yes) > 0 {
			s.line(cut(yeses(yes)+" did not land.", lineLimit))
		}
		s.line(cut(oneLine(f.r.Missed()), lineLimit))
	}
}

// made says what people changed in what lands, and which files they left out.
func (f face) made(s *sheet) {
	v := f.r.Revision
	if v.Made == approval.MadeByEdit && v.Editor != nil {
		s.line(cut("edited by "+name(v.Editor.User), lineLimit))
	}
	out := f.view.LeftOut
	if len(out) == 0 {
		out = v.Declined
	}
	if len(out) == 0 {
		return
	}
	s.line(fmt.Sprintf("%d of %s; left out: ", len(v.Files), plural(len(v.Files)+len(out), "file", "files")))
	const most = 4
	for i, path := range out[:min(len(out), most)] {
		if i > 0 {
			s.put(", ")
		}
		s.as(asCode, cutMiddle(pathLine(path), pathLimit))
	}
	if more := len(out) - most; more > 0 {
		s.put(fmt.Sprintf(" and %d more", more))
	}
}

// yeses names whose yes it was: "bob's yes", "ann's and bob's yes".
func yeses(all []approval.Decision) string {
	names := each.Of(all, func(d approval.Decision) string { return someone(d) + "'s" })
	return join(names, "and") + " yes"
}

// lostYes says whose yes to revision n does not count any more, because the next one is
// another change. A yes to some files made that one, and is told of there.
func (f face) lostYes(n int) string {
	if n < 1 || n >= f.r.Revision.N {
		return ""
	}
	all := slices.DeleteFunc(standingOn(f.r, n), func(d approval.Decision) bool { return len(d.Files) > 0 || d.UserID == "" })
	if len(all) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s was to rev %d", yeses(all), n)
	if v := f.r.Revision; v.N == n+1 && f.moved() {
		return text + " and did not land: " + name(v.Base.Branch) + " moved, so it is asked again."
	}
	return text + " and does not count on rev " + fmt.Sprint(f.r.Revision.N) + "."
}

// said lists the yeses.
func (f face) said(s *sheet) {
	yes := standing(f.r)
	if len(yes) == 0 {
		return
	}
	lines := each.Of(yes, f.decided)
	text := cut(strings.Join(lines, "; "), lineLimit)
	if yes[len(yes)-1].OfRule() {
		s.line(text)
		return
	}
	s.line(fmt.Sprintf("%s · %d of %d", text, len(yes), f.r.Rule.Need))
}

// decided is a decision as "bob on Telegram, 14:06 UTC".
func (f face) decided(d approval.Decision) string {
	return someone(d) + approval.On(d.Channel) + ", " + f.clock.at(d.At)
}

// against is the no, or the wish for changes, with its reason.
func (f face) against(s *sheet) {
	want := approval.Reject
	if f.r.State == approval.ChangesRequested {
		want = approval.RequestChanges
	}
	for i := len(f.r.Decisions) - 1; i >= 0; i-- {
		d := f.r.Decisions[i]
		if d.Revision != f.r.Revision.N || d.Verdict != want {
			continue
		}
		s.line(cut(f.decided(d)+d.Anew(), lineLimit))
		if why := oneLine(d.Comment); why != "" {
			s.line()
			s.as(asCode, `"`+cut(why, textLimit)+`"`)
		}
		if n := len(d.Comments); n > 0 {
			s.line(plural(n, "line comment", "line comments"))
		}
		return
	}
}

// retired is what the message of revision was becomes when the current one has a
// message of its own.
func (f face) retired(was int) *sheet {
	s := &sheet{}
	s.as(asBold, fmt.Sprintf("⧉ Replaced by revision %d · buttons are off", f.r.Revision.N))
	f.title(s)
	s.line(cut(fmt.Sprintf("rev %d → rev %d%s", was, f.r.Revision.N, f.why()), lineLimit))
	if lost := f.lostYes(was); lost != "" {
		s.line(cut(lost, lineLimit))
	}
	return s
}

// double is a card that was sent twice because the answer to the first was lost.
func (f face) double() *sheet {
	s := &sheet{}
	s.as(asBold, "⧉ Sent twice · the buttons are under the other card")
	f.title(s)
	return s
}

// why is what made the current revision.
func (f face) why() string {
	v := f.r.Revision
	made, wish := v.MadeFrom == v.N-1, f.wish()
	switch {
	case made && v.Made == approval.MadeByEdit && v.Editor != nil:
		return ", edited by " + v.Editor.User
	case made && v.Made == approval.MadeByFiles:
		return ", some of its files"
	case wish != nil:
		return " after " + someone(*wish) + "'s comments" + wish.Anew()
	case !f.r.IsPatch():
		return ""
	default:
		return ", because " + name(v.Base.Branch) + " moved"
	}
}

// moved reports whether no person made the current revision of the one before, nor
// wished for it: a revision keeps how it was made when its branch moves.
func (f face) moved() bool {
	v := f.r.Revision
	return (v.Made == "" || v.MadeFrom != v.N-1) && f.wish() == nil
}

// wish is the newest request for changes of the revision before, or nil.
func (f face) wish() *approval.Decision {
	for i := len(f.r.Decisions) - 1; i >= 0; i-- {
		if d := f.r.Decisions[i]; d.Revision == f.r.Revision.N-1 && d.Verdict == approval.RequestChanges {
			return &d
		}
	}
	return nil
}

// headline is a request in one line, for lists: state, title, files and warnings.
func headline(s *sheet, r approval.Request) {
	s.put(iconOf(r.State), " ")
	title := cmp.Or(cut(oneLine(orchestrator.Title(r.Title)), 40), "(no title)")
	s.as(asCode, title)
	switch {
	case r.IsPatch():
		s.put(" · ", plural(len(r.Revision.Files), "file", "files"))
	case r.IsHandover():
		s.put(" · hand-over")
	case r.IsAction():
		s.put(" · call")
	default:
		s.put(" · question")
	}
	if n := len(r.Revision.Warnings); n > 0 {
		s.put(fmt.Sprintf(" · ⚠ %d", n))
	}
}

// standing is the yes of each person to the current revision that was not taken back.
func standing(r approval.Request) []approval.Decision { return standingOn(r, r.Revision.N) }

// standingOn is standing for any revision.
func standingOn(r approval.Request, n int) []approval.Decision {
	var out []approval.Decision
	for _, d := range r.Decisions {
		if d.Revision != n {
			continue
		}
		same := func(o approval.Decision) bool { return o.UserID == d.UserID && o.User == d.User || d.Ends(o) }
		if d.Verdict == approval.Approve && !slices.ContainsFunc(out, same) {
			out = append(out, d)
		} else if d.Verdict != approval.Approve {
			out = slices.DeleteFunc(out, same)
		}
	}
	return out
}
