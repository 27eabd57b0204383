package telegram

import (
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
)

// askedText is all that would be handed on, with the diff of the files that travel, where it
// fits into a card: a yes there is one to every word of it. What cannot be seen is shown as
// code points.
func askedText(r approval.Request, diff string) shownDiff {
	lines := strings.Split(mask.Text(strings.TrimSpace(r.Handover.Whole())), "\n")
	for i, l := range lines {
		lines[i] = patch.Shown(strings.TrimRight(l, "\r"))
	}
	text := strings.Join(lines, "\n")
	if diff != "" {
		files := inline(diff)
		if files == "" || r.Revision.Added+r.Revision.Removed > inlineLines {
			return shownDiff{why: "the files that go with it do not fit into a card"}
		}
		text += "\n\nFiles that go with it, against " + patch.Shown(r.Handover.Place()) + ":\n" + files
	}
	if units(text) > inlineLimit {
		return shownDiff{why: "it is too long for a card"}
	}
	return shownDiff{inline: text}
}

func (d shownDiff) whereAsked(inline bool) string {
	switch {
	case inline:
		return "all of it below"
	case d.why != "":
		return "not all of it is here: " + d.why
	default:
		return "not all of it is here"
	}
}

// asker is who speaks in a card: the agent that asks, or whose patch it is.
func (f face) asker() string {
	if f.r.IsHandover() {
		return f.r.Handover.From
	}
	return f.r.Agent
}

// where is the place that a change lands in, or the repository of what else is asked, which
// may have none.
func (f face) where() string {
	switch {
	case f.r.IsPatch():
		return " · " + name(f.r.Repository) + "/" + name(f.r.Revision.Base.Branch)
	case f.r.Repository != "":
		return " · " + name(f.r.Repository)
	default:
		return ""
	}
}

// thing is what is opened to see all of a request.
func (f face) thing() string {
	if !f.r.IsPatch() {
		return "page"
	}
	return "diff"
}

// subject is what waits for people, and the verb for it.
func (f face) subject() string {
	switch {
	case f.r.IsHandover():
		return "work for " + name(f.r.Agent) + " is"
	case f.r.IsAction():
		return "calls of " + name(f.r.Agent) + " are"
	case f.r.IsQuestion():
		return "a question of " + name(f.r.Agent) + " is"
	}
	return "changes of " + name(f.r.Agent) + " are"
}

// handed is the first line of a card about a hand-over that takes no verdict any more.
func (f face) handed() string {
	to := name(f.r.Agent)
	if f.r.State == approval.Approved {
		return "Approved · handed to " + to
	}
	return f.unasked() + " · not handed to " + to
}

// unasked says how a request ended of which nothing came.
func (f face) unasked() string {
	switch f.r.State {
	case approval.Rejected:
		return "Rejected"
	case approval.Expired:
		return "Expired, not approved"
	case approval.Cancelled:
		return "Cancelled"
	}
	return strings.ReplaceAll(string(f.r.State), "_", " ")
}
