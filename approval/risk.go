package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/textcut"
)

// Level says how much care a request asks for.
type Level string

// A careful request is approved on its page only, where all of it can be seen.
const (
	Plain   Level = "plain"
	Careful Level = "careful"
)

// ReasonCut is the reason of a diff that is too long to be shown as a whole.
const ReasonCut = "diff_cut"

// CutLines is how many changed lines are shown in one piece; a longer diff
// is cut into pages.
const CutLines = patch.MaxLines

// Risk is the level with what gave it: warning codes, checks_failed, diff_cut.
type Risk struct {
	Level   Level    `json:"level"`
	Reasons []string `json:"reasons"`
}

// RiskOf judges the current revision: a warning, a failed check or a diff that had
// to be cut make it careful; notes do not.
func RiskOf(r Request) Risk {
	reasons := warningCodes(r.Revision)
	for _, c := range r.Revision.Checks {
		if !c.OK {
			reasons = appendOnce(reasons, "checks_failed")
		}
	}
	if r.Revision.Added+r.Revision.Removed > CutLines || len(r.Whole()) > CutQuestion {
		reasons = appendOnce(reasons, ReasonCut)
	}
	if len(reasons) == 0 {
		return Risk{Level: Plain, Reasons: reasons}
	}
	return Risk{Level: Careful, Reasons: reasons}
}

// warningCodes lists the kinds of warnings of a revision, each once.
func warningCodes(v Revision) []string {
	codes := []string{}
	for _, w := range v.Warnings {
		codes = appendOnce(codes, w.Code)
	}
	return codes
}

// What settings may make careful, beside what is: a note of that code, or a rule that
// needs two people or more.
const (
	CarefulNoChecks  = "no_checks"
	CarefulNoSandbox = "no_sandbox"
	CarefulNeedTwo   = "need_two"
)

// promote makes warnings of the notes that the settings want looked at.
func (v *Revision) promote(codes []string) {
	v.Notes = slices.DeleteFunc(v.Notes, func(n patch.Note) bool {
		if !slices.Contains(codes, n.Code) {
			return false
		}
		v.Warnings = append(v.Warnings, patch.Warning{Code: n.Code, Text: n.Text})
		return true
	})
}

// warnOfRules makes a revision careful of whose rules some could not be evaluated.
func (v *Revision) warnOfRules(notes []patch.Note) {
	for _, n := range notes {
		if n.Code == policy.RuleError {
			v.Warnings = append(v.Warnings, patch.Warning{Code: policy.RuleError, Text: n.Text})
		}
	}
}

// FitsCard reports whether a card of the chat shows all of what r asks, every changed line
// of every file. It is decided by what is stored with the revision, so that the card and
// the judge of a verdict cannot differ. What is not text, what moved here from another
// place with all its content, and what nobody measured does not fit.
func (r Request) FitsCard() bool {
	files := r.Revision.Files
	if !r.IsPatch() { // files that travel with a hand-over are shown on its page
		return len(files) == 0 && len(r.Whole()) <= CutQuestion
	}
	if len(files) == 0 || len(files) > patch.CardFiles {
		return false
	}
	lines, bytes := 0, int64(0)
	for _, f := range files {
		changed := f.Added + f.Removed
		if f.Binary || f.Moved() || f.TooLarge() || changed > 0 && f.Bytes == 0 {
			return false
		}
		lines, bytes = lines+changed, bytes+f.Bytes
	}
	return lines <= patch.CardLines && bytes <= patch.CardBytes
}

// tooLongFor refuses a yes from a card that cannot show all of the change.
func (r Request) tooLongFor(channel origin.Channel) *orchestrator.Error {
	if channel != origin.Chat || r.FitsCard() {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeForbidden, "To approve this, open the diff: a card in the chat cannot show all of it. It can be rejected here.")
}

// TickUnviewed is the tick of somebody who approves on the page without having opened any
// file of the revision. It stands in the history with the others.
const TickUnviewed = "unviewed"

// Ticks are the codes of what a yes to the current revision has to say that it was looked
// at: what makes the request careful.
func Ticks(r Request) []string { return RiskOf(r).Reasons }

// Unviewed reports whether a yes to r on the page, after that reading, wants the tick
// TickUnviewed. What has no file, such as a hand-over, never does.
func Unviewed(r Request, read Reading) bool { return len(r.Revision.Files) > 0 && read.read() == 0 }

// wanted are the ticks that the ballot needs.
func wanted(r Request, b Ballot) []string {
	codes := slices.Clone(Ticks(r))
	if b.Seen.Surface == SurfacePage && len(r.Revision.Files) > 0 && b.Seen.FilesOpened == 0 {
		codes = append(codes, TickUnviewed)
	}
	return codes
}

// ticked are the ticks of the ballot that are wanted; others mean nothing here.
func ticked(r Request, b Ballot) []string {
	return slices.DeleteFunc(wanted(r, b), func(code string) bool { return !slices.Contains(b.Seen.WarningsTicked, code) })
}

// maxExplained is how many missing ticks are explained; of the others there is the code.
const maxExplained = 5

// notTicked refuses a yes that does not say of everything that it was looked at.
func notTicked(r Request, b Ballot) *orchestrator.Error {
	var missing, means []string
	for _, code := range wanted(r, b) {
		if slices.Contains(b.Seen.WarningsTicked, code) {
			continue
		}
		if missing = append(missing, code); len(missing) > maxExplained {
			means = append(means, code)
			continue
		}
		means = append(means, fmt.Sprintf("%s (%s)", code, r.tickWords(code)))
	}
	if len(missing) == 0 {
		return nil
	}
	todo := "Look at " + plural(len(missing), "it, tick it", "each, tick it") + ", then approve again."
	switch b.Channel {
	case origin.CLI:
		todo = "Read it with gatehouse review, or say what you have looked at: --ticked " + strings.Join(missing, ",")
	case origin.API:
		todo = `Look at each, then send the codes in "ticked".`
	}
	return orchestrator.Errorf(orchestrator.CodeNotTicked, "Your approval was not counted, for %s not ticked: %s. %s",
		plural(len(missing), "one thing is", fmt.Sprintf("%d things are", len(missing))), strings.Join(means, ", "), todo)
}

// tickWords says what a code is about on the current revision.
func (r Request) tickWords(code string) string {
	switch code {
	case TickUnviewed:
		return fmt.Sprintf("you have opened no file of revision %d", r.Revision.N)
	case ReasonCut:
		return "it is too long for one page"
	case "checks_failed":
		for _, c := range r.Revision.Checks {
			if !c.OK {
				return "this check fails: " + named(c.Command)
			}
		}
	}
	for _, w := range r.Revision.Warnings {
		text := textcut.Characters(strings.TrimRight(w.Text, "."), maxName)
		switch {
		case w.Code != code:
			continue
		case w.Path == "":
			return text
		case text == "":
			return named(w.Path)
		}
		return named(w.Path) + ": " + text
	}
	return strings.ReplaceAll(code, "_", " ")
}

// Content is what stands, or would stand, at a path of a repository.
type Content struct {
	Path string
	Blob string // full id
}

// maxContentPath is the longest path that is remembered, in bytes: an index holds no
// longer ones. Content at a longer path is asked about each time.
const maxContentPath = 1000

// contentOf is what f puts at its path. It is not remembered of a removed file, nor under
// a name that a database would not give back byte for byte.
func contentOf(f patch.File) (Content, bool) {
	sound := utf8.ValidString(f.Path) && !strings.ContainsAny(f.Path, "\x00\uFFFD") && len(f.Path) <= maxContentPath
	return Content{f.Path, f.NewBlob}, sound && f.NewBlob != ""
}

// Vouched is what people stand for once r has landed: every content of its revision, if a
// person approved it. A rule's yes says nothing of any content.
func (r Request) Vouched() []Content {
	person := func(d Decision) bool { return d.UserID != "" && !d.OfRule() }
	if !r.IsPatch() || !slices.ContainsFunc(r.yes(), person) {
		return nil
	}
	var all []Content
	for _, f := range r.Revision.Files {
		if c, ok := contentOf(f); ok {
			all = append(all, c)
		}
	}
	return all
}

// markUnseen says of every file of the current revision that was moved or copied, whole or
// in part, whether a person has approved its content at its path before. If nobody has, it
// is a warning: a list that shows a move as one shows nothing of that content.
func markUnseen(ctx context.Context, tx Tx, r *Request) error {
	v := &r.Revision
	var moved []int
	var asked []Content
	for i, f := range v.Files {
		if f.From() == "" || f.NewBlob == "" || f.Empty() { // an empty file is seen by its name
			continue
		}
		moved = append(moved, i)
		if c, ok := contentOf(f); ok {
			asked = append(asked, c)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	seen, err := tx.Approved(ctx, r.Repository, asked)
	if err != nil {
		return err
	}
	v.Files = slices.Clone(v.Files)
	for _, i := range moved {
		f := &v.Files[i]
		c, ok := contentOf(*f)
		f.SeenHere = ok && seen[c]
		if f.Unseen = !f.SeenHere; f.Unseen {
			v.Warnings = patch.WithWarning(v.Warnings, "renamed_unseen", f.Path)
		}
	}
	return nil
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
