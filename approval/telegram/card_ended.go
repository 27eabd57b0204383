package telegram

import (
	"fmt"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

// ended is the card of a request that takes no verdict: how it ended, who said so.
func (f face) ended() *sheet {
	s := &sheet{}
	s.as(asBold, cut(icons[f.r.State]+" "+f.outcome(), firstLimit))
	f.title(s)
	f.because(s)
	f.open(s)
	return s
}

// outcome is the first line without its icon.
func (f face) outcome() string {
	branch := name(f.r.Revision.Base.Branch)
	switch f.r.State {
	case approval.Approved:
		return "Approved · landing"
	case approval.Landed:
		if f.r.Revision.Deliver == "branch" {
			return "Approved · delivered as " + name(f.r.Revision.Branch)
		}
		return "Approved · landed on " + branch
	case approval.Rejected:
		return "Rejected · nothing landed"
	case approval.ChangesRequested:
		return "Changes requested · " + name(f.r.Agent) + " works on it again"
	case approval.Expired:
		return "Expired, not approved · nothing landed"
	case approval.Superseded:
		return "Replaced by a new revision · buttons are off"
	case approval.Stale:
		return "Stale · " + branch + " moved, so it is asked again"
	case approval.Reverted:
		return "Reverted · it had landed on " + branch
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
	case approval.Landed:
		f.said(s)
		s.line("commit ")
		s.as(asCode, first(f.r.Landed, 7))
		if f.r.DecidedAt != nil && f.r.DecidedAt.After(f.r.Revision.At) {
			s.put(" · took ", long(f.r.DecidedAt.Sub(f.r.Revision.At)))
		}
	case approval.Rejected, approval.ChangesRequested:
		f.against(s)
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
		s.line("The next revision shows the difference.")
	}
}

// said lists the yeses.
func (f face) said(s *sheet) {
	yes := standing(f.r)
	if len(yes) == 0 {
		return
	}
	lines := make([]string, len(yes))
	for i, d := range yes {
		lines[i] = f.decided(d)
	}
	text := cut(strings.Join(lines, "; "), lineLimit)
	if strings.HasPrefix(yes[len(yes)-1].User, approval.RuleActor) {
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
		s.line(cut(f.decided(d), lineLimit))
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
	f.open(s)
	return s
}

// why is what made the current revision.
func (f face) why() string {
	v := f.r.Revision
	switch {
	case v.Made == approval.MadeByEdit && v.Editor != nil:
		return ", edited by " + v.Editor.User
	case v.Made == approval.MadeByFiles:
		return ", some of its files"
	}
	for i := len(f.r.Decisions) - 1; i >= 0; i-- {
		d := f.r.Decisions[i]
		if d.Revision == v.N-1 && d.Verdict == approval.RequestChanges {
			return " after " + someone(d) + "'s comments"
		}
	}
	return ", because " + name(v.Base.Branch) + " moved"
}

// headline is a request in one line, for lists: state, title, files and warnings.
func headline(s *sheet, r approval.Request) {
	s.put(icons[r.State], " ")
	title := cut(oneLine(orchestrator.Title(r.Title)), 40)
	if title == "" {
		title = "(no title)"
	}
	s.as(asCode, title)
	s.put(" · ", plural(len(r.Revision.Files), "file", "files"))
	if n := len(r.Revision.Warnings); n > 0 {
		s.put(fmt.Sprintf(" · ⚠ %d", n))
	}
}
