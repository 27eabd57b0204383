package views

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"gatehouse/orchestrator/origin"
)

// Remark is a comment on a line: this person's draft, or one that was sent with a
// decision.
type Remark struct {
	Path  string // raw
	Side  string // L: the file as it was; R: as it would be
	Line  int    // on the shown revision; 0 is the whole file
	First int    // the first of its lines; 0 or Line: it is about one
	Code  string // the line, or lines, as they were when the remark was made; foreign
	Text  string

	Draft    bool // not sent, and nobody else's to see
	Revision int  // on which it was written
	Was      int  // its line there
	Moved    bool // the line stands elsewhere now
	Hidden   bool // its line is on a side that the page does not show

	Earlier  bool // it was sent on an earlier revision than the shown one
	Outdated bool // and its line is not there any more

	Thread    string // names it, once it was sent
	Answers   []AnswerRow
	Resolved  bool
	CanAnswer bool // this person may reply, resolve and reopen

	User string // who sent it
	At   time.Time
	Href string // where it stands on this page, for lists; may be empty
}

// AnswerRow is what somebody said or did under a comment.
type AnswerRow struct {
	User string
	Act  string // reply, resolve, reopen
	Text string // of a reply
	At   time.Time
}

// acted says what somebody did without words.
func (a AnswerRow) acted() string {
	if a.Act == "resolve" {
		return "resolved this"
	}
	return "opened this again"
}

// last is the newest of the answers that is no reply: who resolved it, or reopened it.
func (r Remark) last() AnswerRow {
	for i := len(r.Answers) - 1; i >= 0; i-- {
		if r.Answers[i].Act != "reply" {
			return r.Answers[i]
		}
	}
	return AnswerRow{}
}

// replies counts the answers that are words.
func (r Remark) replies() int {
	n := 0
	for _, a := range r.Answers {
		if a.Act == "reply" {
			n++
		}
	}
	return n
}

// FileEdit is a file that is open in an editor.
type FileEdit struct {
	Text   string
	Hidden int // characters that cannot be seen in it
}

// Find is the search over the whole of a long diff.
type Find struct {
	Text string
	Hits []Hit
	More bool   // there are more hits than are listed
	Note string // what was not searched
}

// Hit is one line that a search found.
type Hit struct {
	Path string
	Name string // "added line 42"
	Text string // the line, cut
	Href string
}

// on reports whether the remark stands at this line of the diff.
func (r Remark) on(l DiffLine) bool {
	if r.Line == 0 || r.Hidden || r.Outdated {
		return false
	}
	if r.Side == "L" {
		return r.Line == l.Old && l.Op != OpAdded
	}
	return r.Line == l.New && l.Op != OpRemoved
}

// place names where a remark is, for lists: upload/retry.go:42.
func (r Remark) place() string {
	s := visibleText(ShortPath(r.Path))
	if r.Line > 0 {
		s += ":" + r.lines()
	}
	if r.Side == "L" {
		s += " (old file)"
	}
	return s
}

// ranged reports whether the remark is about more than one line.
func (r Remark) ranged() bool { return r.First > 0 && r.First < r.Line }

// lines names the line, or the first and the last: 42, 42–48.
func (r Remark) lines() string {
	if r.ranged() {
		return fmt.Sprintf("%d–%d", r.First, r.Line)
	}
	return strconv.Itoa(r.Line)
}

// commentFrom is the first line of the form that is open: what was asked for, else that
// of the draft which is changed.
func (p ReviewPage) commentFrom(line int, remarks []Remark) int {
	if p.CommentFrom > 0 && p.CommentFrom <= line {
		return p.CommentFrom
	}
	for _, r := range remarks {
		if r.Draft && r.ranged() {
			return r.First
		}
	}
	return line
}

// remarksOn are the remarks of one line.
func (f DiffFile) remarksOn(l DiffLine) []Remark {
	var on []Remark
	for _, r := range f.Remarks {
		if r.on(l) {
			on = append(on, r)
		}
	}
	return on
}

// loose are the remarks whose line is not on the page: folded, on another page, or the
// whole file.
func (f DiffFile) loose() []Remark {
	var loose []Remark
	for _, r := range f.Remarks {
		shown := false
		hunks := f.Hunks
		if len(hunks) == 0 && f.Whole != nil {
			hunks = f.Whole.Hunks
		}
		for _, h := range hunks {
			for _, l := range h.Lines {
				shown = shown || r.on(l)
			}
		}
		if !shown {
			loose = append(loose, r)
		}
	}
	return loose
}

// Commentable reports whether a form brings this path back as it is: browsers change
// what is no text, and the ends of lines.
func Commentable(path string) bool {
	return path != "" && utf8.ValidString(path) && strings.TrimSpace(path) == path && strings.IndexFunc(path, unicode.IsControl) < 0
}

// commentable reports whether this person may comment on a line here. Beside a
// comparison the left side is an older revision, which a remark cannot be about.
func (p ReviewPage) commentable(f DiffFile, l DiffLine) bool {
	return p.CanComment && !f.whole && !p.editing() && (p.Against == 0 || l.Op != OpRemoved) && Commentable(f.Path)
}

// commentHref opens the form at a line, also without script.
func (p ReviewPage) commentHref(anchor string) string {
	return p.commentBase() + anchor + "#" + anchor
}

// commentBase is what all these addresses begin with.
func (p ReviewPage) commentBase() string {
	base := p.with(Reading, "")
	if strings.Contains(base, "?") {
		return base + "&comment="
	}
	return base + "?comment="
}

// sideOf is where a remark on a line of the diff belongs.
func sideOf(l DiffLine) (side string, line int) {
	if l.Op == OpRemoved {
		return "L", l.Old
	}
	return "R", l.New
}

// editor is the text of a file in a form. It is written by hand: a browser drops the
// first line feed after the tag, and every other character counts.
func editor(f DiffFile) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		lines := min(max(strings.Count(f.Edit.Text, "\n")+2, 4), 30)
		_, err := fmt.Fprintf(w, `<textarea class="editor" form="edit" id="text-%d" name="text-%d" rows="%d" wrap="off" spellcheck="false" autocapitalize="off" autocomplete="off" data-edit="%s">%s%s</textarea>`,
			f.N, f.N, lines, templ.EscapeString(visibleText(f.Path)), "\n", templ.EscapeString(f.Edit.Text))
		return err
	})
}

// Hidden counts the characters of a text that cannot be seen.
func Hidden(text string) int {
	n := 0
	for _, p := range visible(text) {
		if p.Risky {
			n++
		}
	}
	return n
}

// someFiles says what a yes to some files covers.
func someFiles(files []string) string {
	shown := make([]string, 0, 3)
	for _, f := range files[:min(len(files), 3)] {
		shown = append(shown, visibleText(f))
	}
	s := "only " + strings.Join(shown, ", ")
	if more := len(files) - len(shown); more > 0 {
		s += fmt.Sprintf(" and %s", plural(more, "other file", "other files"))
	}
	return s
}

// modeWords says where a yes counts, beside this page, the command line and the API.
func modeWords(mode string) string {
	if c := origin.Channel(mode); c.HasCards() {
		return "approved " + c.Said() + " or here"
	}
	if mode != string(origin.Web) {
		return ""
	}
	var elsewhere []string
	for _, c := range origin.Cards() {
		elsewhere = append(elsewhere, c.Said())
	}
	return "approved on this page, not " + strings.Join(elsewhere, " or ")
}
