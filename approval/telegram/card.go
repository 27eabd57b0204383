package telegram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
)

// The sizes of a card in UTF-16 units: what fits on a phone's screen, far below the
// 4,096 that Telegram takes.
const (
	cardLimit   = 1400
	titleLimit  = 80
	textLimit   = 240
	pathLimit   = 60
	fileLimit   = 6 // files
	inlineLimit = 900
	firstLimit  = 220 // the first line, where too few can approve
	lineLimit   = 140 // any other line
)

// The words on the buttons.
const (
	approveButton = "Approve"
	scopeButton   = "For this task"
	rejectButton  = "Reject"
	changesButton = "Changes"
	silenceButton = "No answer"
)

// iconOf is the sign of a request's state; an approved one is on its way.
func iconOf(s approval.State) string {
	if s == approval.Approved {
		return badge.Of(orchestrator.Landing).Mark
	}
	return badge.Of(s).Mark
}

// face is all that a card says: the request, and how it looks from one chat.
type face struct {
	r     approval.Request
	view  approval.CardView
	me    string // whose private chat it is, "" in a group
	only  bool   // they may answer this question, and not end it
	clock clock
	diff  shownDiff
	filed document // the message with the diff's file, where the chat has it
	link  string   // of the request's page, "" where it cannot be opened
}

// shape is how much of a card is shown; what does not fit is left out by steps.
type shape struct {
	inline   bool
	notes    bool
	says     int // units of what the agent said
	files    int
	warnings int
}

// shapes go from all to what must be there. Warnings go last, because they are what
// has to be looked at; the page has everything.
func shapes(warnings int) []shape {
	all := []shape{
		{inline: true, notes: true, says: textLimit, files: fileLimit, warnings: warnings},
		{notes: true, says: textLimit, files: fileLimit, warnings: warnings},
		{says: textLimit, files: fileLimit, warnings: warnings},
		{files: fileLimit, warnings: warnings},
		{files: 3, warnings: warnings},
	}
	for _, n := range []int{warnings, 12, 8, 6, 4, 2, 1} {
		all = append(all, shape{files: 1, warnings: min(n, warnings)})
	}
	return all
}

// at is where the whole change is when the card is shown in a shape that has it or not.
func (f face) at(inline bool) document {
	if inline {
		return inCard
	}
	return f.filed
}

// fit is the card in the largest shape that fits, and whether the diff is in it.
func (f face) fit() (*sheet, bool) {
	if f.r.State != approval.Pending {
		return f.ended(), false
	}
	var s *sheet
	for _, sh := range shapes(len(f.r.Revision.Warnings)) {
		sh.inline = sh.inline && f.diff.inline != ""
		if s = f.question(sh); s.n <= cardLimit {
			return s, sh.inline
		}
	}
	return s, false
}

// question is the card of a pending request.
func (f face) question(sh shape) *sheet {
	s := &sheet{}
	f.firstLine(s)
	f.about(s)
	// What is asked stands below as a whole, unless it is too long for that.
	if says := oneLine(f.says()); says != "" && sh.says > 0 && (f.r.IsPatch() || !sh.inline) {
		s.line(name(f.asker()), ": ")
		s.as(asCode, cut(says, sh.says))
	}
	if f.r.IsPatch() {
		s.line()
		f.files(s, sh.files)
		f.checks(s)
	}
	f.warnings(s, sh)
	s.line(cut(f.rule(), lineLimit))
	s.line(f.deadline())
	f.scope(s, sh.inline)
	if why := f.noApprove(sh.inline); why != "" {
		s.line(why)
	}
	f.open(s)
	if sh.inline {
		s.line()
		s.line()
		s.as(asPre, f.diff.inline)
		if f.r.IsPatch() {
			s.entities[len(s.entities)-1].Language = "diff"
		}
	}
	return s
}

// firstLine makes sense alone, on a locked screen.
func (f face) firstLine(s *sheet) {
	head := f.head()
	if f.view.TooFew != "" {
		head += " · " + oneLine(f.view.TooFew)
	}
	s.as(asBold, cut(head, firstLimit))
}

// about is the title, and below who asked whom to change what.
func (f face) about(s *sheet) {
	f.title(s)
	way := f.r.Chain.String()
	if f.r.Requester != "" {
		way = f.r.Requester + " → " + way
	}
	s.line(cut(name(way)+f.where(), lineLimit))
	switch v := f.r.Revision; {
	case v.Made == approval.MadeByEdit && v.Editor != nil:
		s.line(fmt.Sprintf("edited by %s, from rev %d", v.Editor.User, v.MadeFrom))
	case v.Made == approval.MadeByFiles:
		s.line(fmt.Sprintf("some files of rev %d, %s left out", v.MadeFrom, plural(len(v.Declined), "file is", "files are")))
	}
	if lost := f.lostYes(f.r.Revision.N - 1); lost != "" {
		s.line(cut(lost, lineLimit))
	}
}

func (f face) title(s *sheet) {
	s.line()
	title := cut(oneLine(f.r.Title), titleLimit)
	if !f.r.IsPatch() { // it names who is asked, or what is called, before the rest
		title = cut(oneLine(f.r.Title), 2*titleLimit)
	}
	title = cmp.Or(title, "(no title)")
	s.as(asCode, title)
}

// name is a text of the configuration or of git within a line.
func name(s string) string { return cut(oneLine(s), pathLimit) }

// files lists what changed, in columns.
func (f face) files(s *sheet, most int) {
	all := f.r.Revision.Files
	shown := all[:min(len(all), most)]
	if len(shown) == 0 {
		return
	}
	paths := make([]string, len(shown))
	widest, added := 0, 0
	for i, file := range shown {
		paths[i] = cutMiddle(pathLine(file.Path), pathLimit)
		widest = max(widest, utf8.RuneCountInString(paths[i]))
		added = max(added, len(fmt.Sprint(file.Added)))
	}
	var rows []string
	for i, file := range shown {
		// Columns that would not fit on a phone are of no use.
		pad := strings.Repeat(" ", max(0, min(widest, 32)-utf8.RuneCountInString(paths[i])))
		rows = append(rows, fmt.Sprintf("%s%s %+*d −%d%s", paths[i], pad, -(added+1), file.Added, file.Removed, mark(file)))
	}
	s.line()
	s.as(asPre, strings.Join(rows, "\n"))
	if more := len(all) - len(shown); more > 0 {
		s.line(fmt.Sprintf("and %d more", more))
	}
}

// mark says what the numbers of a file do not.
func mark(f patch.File) string {
	switch {
	case f.Status == patch.Deleted:
		return " deleted"
	case f.Binary:
		return " binary"
	case f.Status == patch.Renamed:
		return " renamed"
	case f.Status == patch.Copied:
		return " copied"
	case f.Status == patch.ModeChanged:
		return " mode " + f.NewMode
	case f.Status == patch.TypeChanged:
		return " type"
	default:
		return ""
	}
}

// checks are on one line, failed ones first.
func (f face) checks(s *sheet) {
	checks := slices.Clone(f.r.Revision.Checks)
	if len(checks) == 0 {
		return
	}
	slices.SortStableFunc(checks, func(a, b orchestrator.Check) int {
		switch {
		case a.OK == b.OK:
			return 0
		case !a.OK:
			return -1
		default:
			return 1
		}
	})
	const most = 4
	s.line()
	for i, c := range checks[:min(len(checks), most)] {
		if i > 0 {
			s.put("  ")
		}
		icon := "✓ "
		if !c.OK {
			icon = "✕ "
		}
		s.put(icon)
		s.as(asCode, cut(strings.TrimSuffix(oneLine(c.Command), " ./..."), 24))
	}
	if len(checks) > most {
		s.put(fmt.Sprintf("  and %d more", len(checks)-most))
	}
}

// warnings are one line each; below, where the diff is.
func (f face) warnings(s *sheet, sh shape) {
	all := f.r.Revision.Warnings
	for _, w := range all[:min(len(all), sh.warnings)] {
		s.line("⚠ ", cut(reason(w.Code), 40))
		if w.Path != "" {
			s.put(": ")
			s.as(asCode, cutMiddle(pathLine(w.Path), pathLimit))
		}
	}
	if more := len(all) - sh.warnings; more > 0 {
		s.line("⚠ and ", plural(more, "more warning", "more warnings"))
	}
	if sh.notes {
		for _, n := range f.r.Revision.Notes[:min(len(f.r.Revision.Notes), 3)] {
			s.line("· ", cut(oneLine(n.Text), lineLimit))
		}
	}
	s.line()
	if len(all) == 0 {
		s.put("no warnings · ")
	}
	if !f.r.IsPatch() {
		s.put(f.diff.whereAsked(sh.inline))
		return
	}
	s.put(f.diff.where(f.at(sh.inline)))
}

// rule says what is needed and whose turn it is.
func (f face) rule() string {
	if f.r.IsQuestion() {
		return "Asked: " + cmp.Or(f.turn(), "nobody")
	}
	yes := each.Of(standing(f.r), someone)
	text := fmt.Sprintf("Rule %s: %d yes", name(f.r.Rule.Name), f.view.Needs.Count)
	turn := f.turn()
	switch {
	case len(yes) > 0 && turn != "":
		return fmt.Sprintf("Rule %s: %d of %d yes so far (%s), next %s", name(f.r.Rule.Name), len(yes), f.view.Needs.Count, strings.Join(yes, ", "), turn)
	case len(yes) > 0:
		return fmt.Sprintf("Rule %s: %d of %d yes so far (%s)", name(f.r.Rule.Name), len(yes), f.view.Needs.Count, strings.Join(yes, ", "))
	case turn != "":
		return text + ", " + turn
	default:
		return text
	}
}

// turn is who must act next; in a private chat its owner is "you" and comes first.
func (f face) turn() string {
	i := f.mine()
	if i < 0 {
		return oneLine(f.view.Turn)
	}
	names := approval.Names(f.view.Needs.Missing)
	you := approval.Voter{Name: "you", For: f.view.Needs.Missing[i].For}
	names = slices.Insert(slices.Delete(names, i, i+1), 0, you.String())
	const most = 4
	if len(names) > most {
		names = append(names[:most-1:most-1], fmt.Sprintf("%d others", len(names)-most+1))
	}
	return oneLine(join(names, "or"))
}

// mine is the place of the chat's owner among those who could still say yes, or -1.
func (f face) mine() int {
	return slices.IndexFunc(f.view.Needs.Missing, func(v approval.Voter) bool { return f.me != "" && v.Name == f.me })
}

func (f face) deadline() string {
	digest := first(f.r.Revision.Digest, 8)
	if f.r.ExpiresAt == nil {
		return "No deadline · " + digest
	}
	return "Until " + f.clock.until(*f.r.ExpiresAt) + " · " + digest
}

// offersYes reports whether the card has an Approve button: only where all of what is asked
// can be seen in the chat, and not to somebody in private whose yes does not count, or
// counts already.
func (f face) offersYes(inline bool) bool {
	return slices.Contains(f.view.Verdicts, approval.Approve) && f.at(inline).whole() && (f.me == "" || f.mine() >= 0)
}

// noApprove says why there is no Approve button, and where to approve.
func (f face) noApprove(inline bool) string {
	switch {
	case f.r.IsQuestion():
		return f.howToAnswer(inline)
	case f.offersYes(inline):
		return ""
	}
	reasons := make([]string, 0, len(f.view.Risk.Reasons))
	for _, code := range f.view.Risk.Reasons {
		reasons = append(reasons, reason(code))
	}
	switch {
	case f.r.Overtaken() != "":
		return cut(oneLine(f.r.Overtaken()), lineLimit)
	case len(reasons) > 0:
		return cut("To approve, open the "+f.thing()+": "+strings.Join(reasons, ", "), lineLimit-1) + "."
	case !slices.Contains(f.view.Verdicts, approval.Approve) && f.r.Mode == "chat":
		return "To approve, open the chat: " + f.subject() + " approved there."
	case !slices.Contains(f.view.Verdicts, approval.Approve):
		return "To approve, open the page: " + f.subject() + " approved there."
	case !f.at(inline).whole():
		return "To approve, open the " + f.thing() + ": " + f.diff.missing() + "."
	case f.turn() == "":
		return ""
	default:
		return cut("Approving is up to "+f.turn(), lineLimit-1) + "."
	}
}

// reason is what makes a request careful, within a sentence.
func reason(code string) string {
	if code == approval.ReasonCut {
		return "too long to show here"
	}
	return oneLine(patch.WarningTitle(code))
}

// open says where to open the request when no button can.
func (f face) open(s *sheet) {
	if f.link == "" {
		s.line("Open on the computer that runs Gatehouse")
	}
}
