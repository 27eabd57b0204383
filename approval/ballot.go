package approval

import (
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
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
	Channel   string // web, chat, telegram, cli or api
	Verdict   Verdict
	// Digest is the one that the person has read, whole.
	Digest   string
	Comment  string
	Comments []agent.LineComment // with request_changes
	Files    []string            // approve only these; not offered yet
	Seen     Seen
}

// check validates what does not need the request, and drops bytes that are no text.
func (b *Ballot) check() *orchestrator.Error {
	b.Comment = plain(b.Comment)
	b.Comments = slices.Clone(b.Comments)
	for i, c := range b.Comments {
		b.Comments[i] = agent.LineComment{Path: plain(c.Path), Line: c.Line, Text: plain(c.Text)}
	}
	switch {
	case b.Verdict == Edit:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Editing before approval is not offered yet. Request changes, and say what should be different.")
	case !slices.Contains([]Verdict{Approve, Reject, RequestChanges, Withdraw}, b.Verdict):
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "There is no verdict %q. Use approve, reject, request_changes or withdraw.", b.Verdict)
	case len(b.Files) > 0:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Approving only some files is not offered yet. Approve or reject all of them, or request changes.")
	case b.Digest == "":
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The verdict names no digest. Send the digest of the revision that was read: 64 lower-case hex digits.")
	case len(b.Comment) > MaxComment:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "The comment has %d bytes; %d is the limit.", len(b.Comment), MaxComment)
	}
	return b.checkComments()
}

func (b *Ballot) checkComments() *orchestrator.Error {
	switch {
	case len(b.Comments) > MaxComments:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "There are %d line comments; %d is the limit.", len(b.Comments), MaxComments)
	case len(b.Comments) > 0 && b.Verdict != RequestChanges:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Line comments go with request_changes only. Put a remark into the comment, or request changes.")
	case b.Verdict == RequestChanges && b.Comment == "" && len(b.Comments) == 0:
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Nothing says what should change. Write a comment, or comment on a line.")
	}
	for _, c := range b.Comments {
		if c.Path == "" || c.Text == "" || c.Line < 0 || len(c.Text) > MaxComment || len(c.Path) > MaxComment {
			return orchestrator.Errorf(orchestrator.CodeBadRequest, "A line comment needs a path, a line and a text of 1 to %d bytes.", MaxComment)
		}
	}
	return nil
}

// plain is s as text that every database keeps: valid UTF-8 without NUL.
func plain(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", ""))
}
