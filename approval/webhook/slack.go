package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
)

// The limits of a message to Slack, in characters but where it says bytes.
const (
	maxSection   = 2900 // bytes of a section; Slack takes 3,000 characters
	slackTitle   = 120
	slackText    = 160
	slackLines   = 8 // warnings, failed checks or decisions
	slackDigest  = 8 // first digits
	slackComment = 240
)

type slackMessage struct {
	Text        string       `json:"text"` // for notifications, and for receivers that know no blocks
	Parse       string       `json:"parse"`
	UnfurlLinks bool         `json:"unfurl_links"`
	UnfurlMedia bool         `json:"unfurl_media"`
	Blocks      []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type string     `json:"type"`
	Text *slackWord `json:"text"`
}

type slackWord struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Verbatim bool   `json:"verbatim"` // no names and addresses in the text become links
}

// slack makes a message for Slack. There is a link and no button: a button would
// need an answer, and nobody decides here.
func slack(n news, r approval.Request, view approval.CardView, link string) ([]byte, error) {
	head := []string{"*" + headline(n, r, view) + "*", "> " + foreign(titleOf(r), slackTitle)}
	open := "<" + markup(link) + "|Open the request>"
	m := slackMessage{
		Text: strings.Join(append(head, open), "\n"), Parse: "none",
		Blocks: []slackBlock{section(head), section(facts(r, view))},
	}
	if said := verdicts(r); len(said) > 0 {
		m.Blocks = append(m.Blocks, section(said))
	}
	m.Blocks = append(m.Blocks, section([]string{open}))
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing the message about %s: %w", r.ID, err)
	}
	return body, nil
}

// section is a block of lines; what does not fit is counted.
func section(lines []string) slackBlock {
	var b strings.Builder
	for i, l := range lines {
		rest := fmt.Sprintf("\n… %d more on the page", len(lines)-i)
		if b.Len()+len(l)+1+len(rest) > maxSection {
			b.WriteString(rest)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l)
	}
	return slackBlock{Type: "section", Text: &slackWord{Type: "mrkdwn", Text: b.String(), Verbatim: true}}
}

// markup escapes the three characters with which Slack's markup begins anything that
// links or calls people.
func markup(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// foreign is text that others chose, on one line. Receivers that imitate Slack also
// know @all and Markdown's links, so those are broken up, too.
func foreign(s string, most int) string {
	s = clip(strings.Join(strings.Fields(s), " "), most)
	return strings.NewReplacer("@", "＠", "](", "] (").Replace(markup(patch.Shown(s)))
}

// headline must make sense alone: it is all that a locked phone shows.
func headline(n news, r approval.Request, view approval.CardView) string {
	if view.TooFew != "" {
		return as(approval.Pending, "Approval needed · "+foreign(view.TooFew, 2*slackComment))
	}
	switch {
	case r.IsHandover():
		return handed(n, r, view)
	case r.IsAction():
		return called(n, r, view)
	case r.IsQuestion():
		return heard(r)
	}
	delivery := r.Revision.Delivery().As(func(s string) string { return foreign(s, slackText) })
	switch n.kind {
	case Requested:
		return as(approval.Pending, "Approval needed")
	case Revised:
		return as(approval.Pending, fmt.Sprintf("Approval needed · revision %d", r.Revision.N))
	case Decided:
		switch r.State {
		case approval.Approved:
			return as(orchestrator.Landing, "Approved · "+delivery.Doing())
		case approval.Rejected:
			return as(approval.Rejected, "Rejected · nothing landed")
		}
		return as(approval.Pending, fmt.Sprintf("Approval needed · %d of %d so far", view.Needs.Have, view.Needs.Count))
	case ChangesRequested:
		return as(approval.ChangesRequested, "Changes requested · the agent works again")
	case Expired:
		return as(approval.Expired, "Expired, not approved · nothing landed")
	case Stale:
		return as(approval.Stale, "Base moved, no longer applies as approved · to be asked again")
	case Landed:
		return as(approval.Landed, "Approved · "+delivery.Done())
	case Reverted:
		return as(approval.Reverted, "Reverted on "+delivery.Target)
	case Failed:
		return as(approval.Failed, "Failed · nothing landed")
	case Cancelled:
		return as(approval.Cancelled, "Cancelled · nothing landed")
	default:
		return as(approval.Superseded, "Replaced by a newer revision")
	}
}

// as puts the sign of a state before what is said of it.
func as[S ~string](state S, said string) string { return badge.Of(state).Mark + " " + said }

// facts are what the request is, and what to look at.
func facts(r approval.Request, view approval.CardView) []string {
	v := r.Revision
	from := foreign(r.Chain.String(), slackText)
	if r.Requester != "" {
		from = foreign(r.Requester, slackText) + " → " + from
	}
	if r.IsPatch() {
		from += " · " + foreign(r.Repository+"/"+v.Base.Branch, slackText)
	}
	digest := foreign(v.Digest[:min(len(v.Digest), slackDigest)], slackDigest)
	lines := append([]string{from}, subject(r, digest)...)
	for _, w := range v.Warnings[:min(len(v.Warnings), slackLines)] {
		line := "⚠ " + foreign(w.Text, slackText)
		if w.Path != "" {
			line += " · " + foreign(w.Path, slackText)
		}
		lines = append(lines, line)
	}
	lines = more(lines, len(v.Warnings), "warnings")
	var failed []string
	for _, c := range v.Checks {
		if !c.OK {
			failed = append(failed, "✕ "+foreign(c.Command, slackText))
		}
	}
	lines = more(append(lines, failed[:min(len(failed), slackLines)]...), len(failed), "failed checks")
	if r.State != approval.Pending {
		if r.Landed != "" {
			lines = append(lines, "commit "+foreign(r.Landed[:min(len(r.Landed), 7)], 7))
		}
		return lines
	}
	wait := "Waits for people"
	if view.Turn != "" {
		wait = "Waits for " + foreign(view.Turn, slackComment)
	}
	if r.ExpiresAt != nil {
		wait += " · until " + clock(*r.ExpiresAt)
	}
	return append(lines, wait)
}

// more says how many of a kind were left out.
func more(lines []string, all int, what string) []string {
	if all <= slackLines {
		return lines
	}
	return append(lines, fmt.Sprintf("… and %d more %s", all-slackLines, what))
}

// verdicts are who decided what on the current revision, newest last.
func verdicts(r approval.Request) []string {
	var lines []string
	said := current(r)
	for _, d := range said[max(0, len(said)-slackLines):] {
		lines = append(lines, verdict(d))
	}
	return lines
}

func verdict(d approval.Decision) string {
	line := foreign(d.User, slackText)
	if rule, ok := d.ByRule(); ok {
		line = "Rule " + foreign(rule, slackText)
	}
	if d.For != "" {
		line += " for " + foreign(d.For, slackText)
	}
	line += " " + did(d) + where(d.Channel) + ", " + clock(d.At)
	if d.Comment != "" {
		line += ": “" + foreign(mask.Text(d.Comment), slackComment) + "”"
	}
	return line
}

func did(d approval.Decision) string {
	if d.ForTask && d.Verdict == approval.Approve {
		return "approved for this task"
	}
	if n := len(d.Files); n > 0 && d.Verdict == approval.Approve {
		return fmt.Sprintf("approved %d of the files", n)
	}
	return badge.Did(d.Verdict, "")
}

// where says on which channel; a rule decides nowhere.
func where(c origin.Channel) string {
	if c.Shown() == "" {
		return ""
	}
	return " " + c.Shown()
}

// clock is a time that needs no knowledge of where the reader is.
func clock(t time.Time) string { return t.UTC().Format("Mon 2 Jan 15:04 UTC") }
