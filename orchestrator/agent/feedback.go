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
}

// Remarks is the feedback as an agent reads it behind its task: what was said, where the
// files stand, and the previous diff where withDiff is set.
func (f *Feedback) Remarks(withDiff bool) string {
	var b strings.Builder
	b.WriteString("A person read the changes made so far and asks for other ones.\n")
	if f.Comment != "" {
		fmt.Fprintf(&b, "\n%s\n", f.Comment)
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
