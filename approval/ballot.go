package approval

import (
	"encoding/json"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// The limits of what a person may say with one verdict.
const (
	MaxComment  = 32 << 10 // bytes of a comment, and of one line comment
	MaxComments = 500      // line comments
)

// Ballot is a verdict as it comes in.
type Ballot struct {
	RequestID string // the whole id
	Principal people.Principal
	Channel   origin.Channel // web, chat, telegram, cli or api
	Verdict   Verdict
	// Digest is the one that the person has read, whole.
	Digest string
	// Revision is the one that was shown, 0 when that is not known. An agent may make the
	// same tree twice: its digest is the same, the rule and the checks may not be. So
	// without it the digest must be that of one revision only.
	Revision int
	anew     bool // it came as Renew
	twins    bool // further revisions of the request have the current one's digest
	Comment  string
	Comments []agent.LineComment // with every verdict but a withdrawal
	// LeaveDrafts keeps the person's drafts as they are. Else they are added to Comments
	// and removed, wherever the verdict is given: what somebody wrote about a change is
	// not lost by their yes.
	LeaveDrafts bool
	StartOver   bool            // with request_changes: from the base, with an empty conversation
	ForTask     bool            // with approve of a call: for the rest of the task
	Input       json.RawMessage // with edit of a call: the whole new input
	Choice      string          // with an answer: one of the question's choices
	Files       []string        // with approve: only these, by path; nil: all
	// Edits or Patch, a unified diff on top of the revision, come with edit.
	Edits []patch.FileEdit
	Patch string
	// Whole says that all of the change stands beside the button that was pressed, as a card
	// of a chat that offers Approve has it.
	Whole bool
	// Seen has the ticks as they came; those that were not asked for are dropped.
	Seen Seen
}

// check validates what does not need the request, and drops bytes that are no text.
func (b *Ballot) check() *orchestrator.Error {
	b.Comment = plain(b.Comment)
	b.Files = once(b.Files)
	b.Comments = slices.Clone(b.Comments)
	for i, c := range b.Comments {
		b.Comments[i] = agent.LineComment{Path: plain(c.Path), Line: c.Line, Side: c.Side, Code: quote(c.Code), Text: plain(c.Text)}
	}
	switch {
	case !slices.Contains([]Verdict{Approve, Reject, RequestChanges, Edit, Withdraw, Respond}, b.Verdict):
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "There is no verdict %q. Use approve, reject, request_changes, edit, withdraw, or answer for a question.", b.Verdict)
	case b.Files != nil && b.Verdict != Approve:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "A choice of files goes with approve only.")
	case b.Files != nil && len(b.Files) == 0:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "No file is chosen. Name the files to approve, or reject the change.")
	case b.StartOver && b.Verdict != RequestChanges:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "start_over goes with request_changes only: it says where the agent begins when it works again.")
	case b.Digest == "":
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The verdict names no digest. Send the digest of the revision that was read: 64 lower-case hex digits.")
	case b.Revision < 0:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "There is no revision %d. Send the number of the revision that was read, from 1.", b.Revision)
	case len(b.Comment) > MaxComment:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The comment has %d bytes; %d is the limit.", len(b.Comment), MaxComment)
	}
	if refused := b.checkEdit(); refused != nil {
		return refused
	}
	return b.checkComments()
}

// once is a list without what it has already named; nil stays nil.
func once(names []string) []string {
	var out []string
	if names != nil {
		out = []string{}
	}
	for _, name := range names {
		out = appendOnce(out, name)
	}
	return out
}

// checkEdit holds that an edit says what to change, once, and nothing else does.
func (b *Ballot) checkEdit() *orchestrator.Error {
	edits := len(b.Edits) > 0 || b.Patch != "" || b.Input != nil
	switch {
	case edits && b.Verdict != Edit:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Edits go with the verdict edit only.")
	case b.Verdict == Edit && !edits:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The edit changes nothing. Send edits with the new text of files, or a patch on top of this revision.")
	case len(b.Edits) > 0 && b.Patch != "" || b.Input != nil && (len(b.Edits) > 0 || b.Patch != ""):
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The edit has more than one of edits, a patch and an input. Send one of them.")
	}
	return nil
}

func (b *Ballot) checkComments() *orchestrator.Error {
	switch {
	case len(b.Comments) > MaxComments:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "There are %d line comments; %d is the limit.", len(b.Comments), MaxComments)
	case len(b.Comments) > 0 && b.Verdict == Withdraw:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Line comments do not go with a withdrawal. Put a remark into the comment.")
	case b.LeaveDrafts && b.saysNothing():
		return nothingSaid()
	}
	for _, c := range b.Comments {
		if refused := checkRemark(c); refused != nil {
			return refused
		}
	}
	return nil
}

// takesDrafts reports whether the person's drafts go with the verdict. A withdrawal opens
// the question again, and they stay for the next verdict on it.
func (b *Ballot) takesDrafts() bool { return !b.LeaveDrafts && b.Verdict != Withdraw }

// saysNothing reports whether changes are requested without a word about which.
func (b *Ballot) saysNothing() bool {
	return b.Verdict == RequestChanges && b.Comment == "" && len(b.Comments) == 0
}

func nothingSaid() *orchestrator.Error {
	return orchestrator.Errorf(orchestrator.CodeBadRequest, "Nothing says what should change. Write a comment, or comment on a line.")
}

func checkRemark(c agent.LineComment) *orchestrator.Error {
	switch {
	case c.Path == "" || c.Text == "" || c.Line < 0 || len(c.Text) > MaxComment || len(c.Path) > MaxComment:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "A line comment needs a path, a line and a text of 1 to %d bytes.", MaxComment)
	case c.Side != "" && c.Side != LeftSide && c.Side != RightSide:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The side of a line comment is %q. Use L for the old file, or R or nothing for the new one.", c.Side)
	}
	return nil
}

// plain is s as text that every database keeps: valid UTF-8 without NUL.
func plain(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", ""))
}
