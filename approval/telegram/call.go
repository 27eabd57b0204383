package telegram

import (
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
)

// gap is a run of blanks behind which a reader may miss what follows.
var gap = strings.Repeat(" ", 40)

// wholeText is all that is asked about a call, or by a question, where it fits into a card: a
// yes there is one to every character of it. What cannot be seen is shown as code points.
func wholeText(r approval.Request) shownDiff {
	whole := strings.TrimSuffix(r.Whole(), "\n")
	if r.IsQuestion() {
		whole = numbered(r)
	}
	if len(whole) > 4*inlineLimit {
		return shownDiff{why: "it is too long for a card"}
	}
	lines := strings.Split(mask.Text(whole), "\n")
	for i, l := range lines {
		lines[i] = patch.Shown(l)
	}
	text := strings.Join(lines, "\n")
	switch {
	case units(text) > inlineLimit:
		return shownDiff{why: "it is too long for a card"}
	case r.IsQuestion():
		return shownDiff{inline: strings.TrimSpace(text)}
	case strings.ContainsAny(r.Call().Tool+r.Call().Server, "\n\r"): // its lines would pass for fields
		return shownDiff{why: "the name of the tool has several lines"}
	case mask.Text(whole) != whole:
		return shownDiff{why: "a part of it is masked here"}
	case strings.Contains(strings.ReplaceAll(whole, "\t", " "), gap):
		return shownDiff{why: "it has long gaps"}
	case strings.TrimSpace(text) != text: // Telegram cuts blanks off the end of a message
		return shownDiff{why: "it ends with blanks"}
	}
	return shownDiff{inline: text}
}

// head is the first line of a pending request's card.
func (f face) head() string {
	text := "◆ Approval needed · "
	switch {
	case f.r.IsQuestion():
		return "◆ " + name(f.r.Agent) + " asks"
	case f.r.IsHandover():
		return text + "hand-over to " + name(f.r.Agent)
	case f.r.IsAction():
		text += name(f.r.Agent) + " wants to call a tool"
		if f.r.Revision.N == 1 {
			return text
		}
		text += " · "
	}
	return text + "rev " + strconv.Itoa(f.r.Revision.N)
}

// says is what stands in a card in place of all that is asked.
func (f face) says() string {
	switch {
	case f.r.IsAction():
		return f.r.Call().Shown()
	case f.r.IsQuestion():
		return f.r.Question.Text
	}
	return f.r.Revision.Text
}

// scopeWords say what a yes for the rest of the task would cover; "" where they cannot be
// shown as they are: nobody may allow more, or something else, than what they read.
func scopeWords(r approval.Request) string {
	scope, ok := r.Scope()
	if !ok {
		return ""
	}
	words := scope.String()
	if units(words) > textLimit || strings.ContainsAny(words, "\t\n\r") || strings.Contains(words, gap) ||
		patch.Shown(words) != words || mask.Text(words) != words {
		return ""
	}
	return words
}

// offersScope reports whether the card has a button for the rest of the task.
func (f face) offersScope(inline bool) bool { return f.offersYes(inline) && scopeWords(f.r) != "" }

// scope says what that button covers.
func (f face) scope(s *sheet, inline bool) {
	if f.offersScope(inline) {
		s.line(scopeButton, ": ")
		s.as(asCode, scopeWords(f.r))
	}
}

// granted says what else the yes to a call covers.
func (f face) granted(s *sheet) {
	if !f.r.ForTask() {
		return
	}
	scope, _ := f.r.Scope()
	s.line(scopeButton, ": ")
	s.as(asCode, cut(oneLine(scope.String()), textLimit))
	if by, at := f.r.Revoked(); by != "" {
		s.line(cut("Revoked by "+name(by)+", "+f.clock.at(at)+": such calls are asked again", lineLimit))
	}
}

// called is the first line of a card about a call that takes no verdict any more.
func (f face) called() string {
	by, _ := f.r.Revoked()
	switch {
	case f.r.ForTask() && by != "":
		return "Approved for this task · revoked by " + name(by)
	case f.r.ForTask():
		return "Approved for this task · " + name(f.r.Agent) + " may make such calls"
	case f.r.State == approval.Approved:
		return "Approved · " + name(f.r.Agent) + " may make this call"
	}
	return f.unasked() + " · not called"
}
