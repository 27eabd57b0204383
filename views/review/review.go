package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	"gatehouse/views/diff"

	"github.com/a-h/templ"
)

// ReviewPage is `/approvals/{id}`.
type ReviewPage struct {
	views.Chrome
	ID            string
	TaskID        string
	Title         string       // the task's first line; foreign
	Ask           *HandoverAsk // of a hand-over; nil for others
	Call          *CallAsk     // of a call of a tool; nil for others
	Question      *QuestionAsk // that an agent asks; nil for others
	State         string
	Whose         string // "you or ann"
	RevokedBy     string // who ended what was allowed for the rest of the task; "" while it holds
	RevokedAt     time.Time
	TooFew        string    // why it cannot get enough yeses; first line when set
	Since         time.Time // when it was asked
	ExpiresAt     time.Time // zero: never
	Revision      int       // the one that is shown
	Against       int       // the diff shows only what changed since this revision; 0: all
	WholeFiles    int       // size of the whole revision, also where Files are others or left out
	WholeAdded    int
	WholeRemoved  int
	Newest        int // the newest there is; more than Revision: superseded while open
	NewestAt      time.Time
	Revisions     []int
	Digest        string // of the shown revision
	Repository    string
	Target        string // branch where it lands
	Deliver       string // merge, or branch: then the yes pushes Branch, and Target stays
	Branch        string // the agent's
	Base          string
	BaseAt        time.Time // when that commit was made; zero where it is not known
	Commit        string    // landed merge commit
	Requester     string
	Via           origin.Origin
	Chain         []string
	Agent         string
	Says          string // what the agent wrote
	Rule          RuleLine
	FourEyes      bool   // false: the page says that the asker may approve
	Mode          string // any, web, chat or telegram: where a yes may be given beside this page
	Read          string // who has read the shown revision, where and how much; empty: nobody
	Made          string // how people made the shown revision of another: "edited by ann"; empty: the agent did
	Share         string // "2 of 4 files; left out: a.txt, b.txt" once it landed without them; else empty
	Shadow        string // what the rules on trial would ask; empty without any
	CanDecide     bool
	MayNot        string // why this person cannot decide; empty when they can
	NoYes         string // why the yes is not theirs, where other verdicts are
	Overtaken     string // the branch that changed so that a yes would land nothing
	Missed        string // that the reader's newest yes landed nothing, and why; empty when it did or may
	MissedHref    string // where what changed since is shown
	MissedLink    string
	CanMark       bool     // may mark files as viewed
	Viewed        []int    // the numbers of those that they marked
	Unviewed      bool     // they have opened none of this revision
	Ticks         []string // codes that a yes has to tick, beside those of the warnings
	Ticked        []string // of the form that was refused
	CanComment    bool     // may comment on lines of what is shown
	CanEdit       bool     // may make the next revision by editing this one
	Doing         Doing
	CommentAt     string        // the line whose comment is being written: F3R42
	CommentFrom   int           // the first of the lines that it is about; 0: that line alone
	CommentText   string        // what was typed there and not taken
	Back          string        // the page's query: forms that change nothing else lead back to it
	Drafts        int           // this person's comments that are not sent, on all lines
	Gone          []diff.Remark // those whose line is not there any more
	Elsewhere     []diff.Remark // sent comments on files that the shown revision does not change
	OpenComments  int           // comments that were sent, of all revisions, and are not resolved
	OpenHref      string        // where the first of them stands; may be empty
	ReplyTo       string        // the comment whose answer was not taken
	ReplyText     string        // with what was typed
	Unsent        string        // words that were not taken, where the page has no form for them any more
	Unplaced      bool          // comments of earlier revisions could not be placed
	Picked        []int         // files whose tick is set, where files are chosen; nil: all
	Find          *Find         // the search over the whole diff; nil: the diff is short enough for the browser's
	CanWithdraw   bool
	CanRevert     bool
	CanLand       bool   // landing was refused and may be tried again
	LandProblem   string // why
	BaseMoved     string // "main moved by 2 commits; this change still applies unchanged"
	Outcome       *Outcome
	Refused       string // why this person's last verdict was not taken
	Comment       string // what they wrote, kept
	StartOver     bool   // what they ticked, kept
	Decisions     []approval.Decision
	Spots         map[string]string // where line comments stand on the page, by their ids
	Warnings      []patch.Warning
	Notes         []patch.Note
	Checks        []orchestrator.Check
	Files         []diff.DiffFile
	Added         int
	Removed       int
	Split         bool // ?view=split
	MoreFilesHref string
	CutNote       string // what of the diff is not on this page, with its size
}

// RuleLine is which rule asks and how far it is.
type RuleLine struct {
	Name string
	Need int
	From []string
	Yes  []string // who said yes to this revision
}

// Outcome is the end of a request, or what holds it after a yes.
type Outcome struct {
	State   string
	By      string
	For     string // the absent person in whose place
	Channel origin.Channel
	At      time.Time
	Comment string
	Commit  string
	Missed  bool   // the yes lands nothing: the branch changed meanwhile
	Anew    string // see approval.Decision
}

// Doing is what a person does on the page beside reading.
type Doing string

// What the page can be opened for.
const (
	Reading Doing = ""
	Picking Doing = "pick" // choosing the files that are approved
	Editing Doing = "edit" // changing files before they are approved
)

// fileHref leads to a file on the page; "" where it has none of that name.
func (p ReviewPage) fileHref(path string) string {
	for _, f := range p.Files {
		if path != "" && f.Path == path {
			return fmt.Sprintf("#F%d", f.N)
		}
	}
	return ""
}

// sent are the line comments of a decision, for its list.
func (p ReviewPage) sent(d approval.Decision) []diff.Remark {
	out := make([]diff.Remark, len(d.Comments))
	for i, c := range d.Comments {
		out[i] = diff.Remark{Path: c.Path, Side: cmp.Or(c.Side, approval.RightSide), Line: c.Line, First: FirstOf(c.Line, c.Code), Code: c.Code, Text: c.Text,
			Href: p.Spots[approval.ThreadID(d, i)]}
	}
	return out
}

// FirstOf is where a run of lines begins that ends with a line and reads like this.
func FirstOf(line int, code string) int { return max(0, line-strings.Count(code, "\n")) }

// warningKinds lists each code once, in the order of the warnings.
func (p ReviewPage) warningKinds() []string {
	var kinds []string
	seen := map[string]bool{}
	for _, w := range p.Warnings {
		if !seen[w.Code] {
			seen[w.Code] = true
			kinds = append(kinds, w.Code)
		}
	}
	return kinds
}

// ticks are the codes that a yes has to tick, those of warnings first.
func (p ReviewPage) ticks() []string {
	codes := p.warningKinds()
	for _, code := range p.Ticks {
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// wantsTicks reports whether a yes needs any.
func (p ReviewPage) wantsTicks() bool { return p.Unviewed || len(p.ticks()) > 0 }

// isTicked reports whether the form that was refused had this one ticked.
func (p ReviewPage) isTicked(code string) bool { return slices.Contains(p.Ticked, code) }

// openedTo says where script tells which files were opened, where that is kept: for a
// person, of the files of the revision itself.
func (p ReviewPage) openedTo() templ.Attributes {
	if !p.CanMark || !p.ofPatch() || p.editing() {
		return nil
	}
	return templ.Attributes{"data-opened-to": views.OpenedHref(p.ID)}
}

// tickWords are the words beside a tick.
func (p ReviewPage) tickWords(code string) string {
	switch code {
	case approval.TickUnviewed:
		return "I approve without having opened any file"
	case approval.ReasonCut:
		if p.Call != nil { // which is on one page
			return "I have looked at all of it, to its end"
		}
		return "I have looked at all of it, page by page"
	}
	return "I have looked at: " + views.WarningName(code)
}

// size is what a yes lands: the whole revision, also beside a comparison.
func (p ReviewPage) size() (files, added, removed int) {
	if p.WholeFiles > 0 {
		return p.WholeFiles, p.WholeAdded, p.WholeRemoved
	}
	return len(p.Files), p.Added, p.Removed
}

// fileCount is how many files the whole revision changes.
func (p ReviewPage) fileCount() int {
	n, _, _ := p.size()
	return n
}

// Superseded says that a newer revision replaced the one on the page.
func (p ReviewPage) Superseded() bool { return p.Newest > p.Revision }

// picking and editing are the page's two other uses, while the request is open.
func (p ReviewPage) picking() bool { return p.open() && p.Doing == Picking }
func (p ReviewPage) editing() bool { return p.open() && p.Doing == Editing }

// canPick reports whether there is a choice of files to approve.
func (p ReviewPage) canPick() bool {
	return p.open() && p.CanDecide && p.ofPatch() && p.NoYes == "" && p.Against == 0 && p.fileCount() > 1
}

// picked reports whether a file's tick is set.
func (p ReviewPage) picked(n int) bool { return p.Picked == nil || slices.Contains(p.Picked, n) }

// pickCount is how many are.
func (p ReviewPage) pickCount() int {
	if p.Picked == nil {
		return p.fileCount()
	}
	return len(p.Picked)
}

// editCount is how many files are open in an editor.
func (p ReviewPage) editCount() int {
	n := 0
	for _, f := range p.Files {
		if f.Edit != nil {
			n++
		}
	}
	return n
}

// opens reports whether a file is open because of what is done in it.
func (p ReviewPage) opens(f diff.DiffFile) bool {
	return slices.ContainsFunc(f.Remarks, func(r diff.Remark) bool { return !r.Resolved }) || f.Edit != nil || strings.HasPrefix(p.CommentAt, f.Anchor()+"L") || strings.HasPrefix(p.CommentAt, f.Anchor()+"R")
}

// editable reports whether a file may be opened in an editor at all.
func editable(f diff.DiffFile) bool {
	return f.Binary == nil && f.Status != "deleted" && f.NewMode != "120000" && f.NewMode != "160000"
}

// with is the page opened for something else, at the same place.
func (p ReviewPage) with(d Doing, value string) string {
	path := p.Path
	for _, k := range []string{string(Picking), string(Editing), "comment"} {
		path = views.WithQuery(path, k, "")
	}
	if d == Reading {
		return path
	}
	return views.WithQuery(path, string(d), value)
}

// firstShown is the number of the first file whose lines are on the page.
func (p ReviewPage) firstShown() int {
	for _, f := range p.Files {
		if f.Elsewhere == "" || f.Edit != nil {
			return f.N
		}
	}
	return 0
}

// open says whether verdicts can still be given on what is shown.
func (p ReviewPage) open() bool {
	return !p.Superseded() && p.State == "pending"
}

func (p ReviewPage) delivery() patch.Delivery {
	return patch.Delivery{Mode: p.Deliver, Target: p.Target, Branch: p.Branch}
}
