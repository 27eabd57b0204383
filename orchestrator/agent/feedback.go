package agent

import (
	"fmt"
	"strings"
)

// Feedback is what a person said with "request changes".
type Feedback struct {
	Comment  string        `json:"comment"`
	Comments []LineComment `json:"comments,omitempty"`
	Note     string        `json:"note,omitempty"` // what is left out of Comments, and why
	Diff     string        `json:"diff,omitempty"` // the previous revision's unified diff
	// Revision is the one that the person read: the files are as it left them, unless
	// StartOver is set. 0 in feedback of before that was so.
	Revision  int  `json:"revision,omitempty"`
	StartOver bool `json:"start_over,omitempty"`
	Edited    bool `json:"edited,omitempty"` // the files differ from what the agent left: people edited them, or the branch came in
	// Earlier is what people asked for in the rounds before, oldest first, where the run begins
	// with none of it in the files; Left is how much of it is too old or too long to be told.
	Earlier []Earlier `json:"earlier,omitempty"`
	Left    int       `json:"earlier_left,omitempty"`
	// Renewed says that nobody asks for other changes: what people approved does not fit the
	// branch any more.
	Renewed bool `json:"renewed,omitempty"`
}

// Earlier is one thing that a person asked for in an earlier round: a comment, or a remark
// on a line of that revision.
type Earlier struct {
	Revision int          `json:"revision"` // the one that they read
	By       string       `json:"by"`
	Comment  string       `json:"comment,omitempty"`
	Remark   *LineComment `json:"remark,omitempty"`
}

// Size is how many bytes of text it has.
func (e Earlier) Size() int {
	n := len(e.By) + len(e.Comment)
	if e.Remark != nil {
		n += len(e.Remark.Path) + len(e.Remark.Text) + len(e.Remark.Code)
	}
	return n
}

// String is it as an agent reads it. Further lines stand further in, so that none of them
// can pass for somebody else's.
func (e Earlier) String() string {
	text := e.Comment
	if e.Remark != nil {
		text = e.Remark.String()
	}
	return fmt.Sprintf("%s, of revision %d: %s", e.By, e.Revision, strings.ReplaceAll(text, "\n", "\n    "))
}

// Before is what was asked for in earlier rounds as an agent reads it; "" where that is nothing.
func (f *Feedback) Before() string {
	if len(f.Earlier) == 0 && f.Left == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("People asked for this before, oldest first. It still holds, and the files do not have it:\n")
	if f.Left > 0 {
		fmt.Fprintf(&b, "(%d older ones are not told again here: there are too many, or they are too long.)\n", f.Left)
	}
	for _, e := range f.Earlier {
		fmt.Fprintf(&b, "%s\n", e)
	}
	return b.String()
}

// Remarks is the feedback as an agent reads it behind its task: what was said, where the
// files stand, and the previous diff where withDiff is set.
func (f *Feedback) Remarks(withDiff bool) string {
	var b strings.Builder
	if !f.Renewed {
		b.WriteString("A person read the changes made so far and asks for other ones.\n")
	}
	if f.Comment != "" {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", f.Comment)
	}
	if before := f.Before(); before != "" {
		fmt.Fprintf(&b, "\n%s", before)
	}
	if len(f.Comments) > 0 {
		b.WriteString("\nRemarks on lines:\n")
	}
	for _, c := range f.Comments {
		fmt.Fprintf(&b, "%s\n", c)
	}
	if f.Note != "" {
		fmt.Fprintf(&b, "%s\n", f.Note)
	}
	if where := f.where(); where != "" {
		fmt.Fprintf(&b, "\n%s\n", where)
	}
	if f.Diff != "" && withDiff {
		fmt.Fprintf(&b, "\nThe previous diff:\n\n%s", f.Diff)
		if !strings.HasSuffix(f.Diff, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// where says what the files are that the run begins with.
func (f *Feedback) where() string {
	switch {
	case f.StartOver:
		return "Start over: the files are as they were before the first change."
	case f.Revision == 0:
		return ""
	case f.Edited:
		return fmt.Sprintf("The files are those of revision %d, with changes that are not yours: read a file before you change it, and go on from there.", f.Revision)
	}
	return fmt.Sprintf("The files are those of revision %d: go on from there.", f.Revision)
}
