package diff

import (
	"fmt"
	"strconv"
	"time"

	"gatehouse/approval"
	"gatehouse/views"
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
	Answers   []approval.Answer
	Resolved  bool
	CanAnswer bool // this person may reply, resolve and reopen

	User string // who sent it
	At   time.Time
	Href string // where it stands on this page, for lists; may be empty
}

// Acted says what somebody did without words.
func Acted(a approval.Answer) string {
	if a.Act == approval.Resolve {
		return "resolved this"
	}
	return "opened this again"
}

// Last is the newest of the answers that is no reply: who resolved it, or reopened it.
func (r Remark) Last() approval.Answer {
	for i := len(r.Answers) - 1; i >= 0; i-- {
		if r.Answers[i].Act != approval.Reply {
			return r.Answers[i]
		}
	}
	return approval.Answer{}
}

// Replies counts the answers that are words.
func (r Remark) Replies() int {
	n := 0
	for _, a := range r.Answers {
		if a.Act == approval.Reply {
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

// Place names where a remark is, for lists: upload/retry.go:42.
func (r Remark) Place() string {
	s := views.VisibleText(views.ShortPath(r.Path))
	if r.Line > 0 {
		s += ":" + r.Lines()
	}
	if r.Side == "L" {
		s += " (old file)"
	}
	return s
}

// Ranged reports whether the remark is about more than one line.
func (r Remark) Ranged() bool { return r.First > 0 && r.First < r.Line }

// Lines names the line, or the first and the last: 42, 42–48.
func (r Remark) Lines() string {
	if r.Ranged() {
		return fmt.Sprintf("%d–%d", r.First, r.Line)
	}
	return strconv.Itoa(r.Line)
}

// RemarksOn are the remarks of one line.
func (f DiffFile) RemarksOn(l DiffLine) []Remark {
	var on []Remark
	for _, r := range f.Remarks {
		if r.on(l) {
			on = append(on, r)
		}
	}
	return on
}

// Loose are the remarks whose line is not on the page: folded, on another page, or the
// BesideDiff file.
func (f DiffFile) Loose() []Remark {
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
