package patch

import (
	"errors"
	"fmt"
	"strings"
)

// The codes of a Refusal; they are part of the public contract.
const (
	CodeAnalysisOnly    = "analysis_only"
	CodePathOutside     = "path_outside"
	CodePathProtected   = "path_protected"
	CodePathAlias       = "path_alias"
	CodeBadMode         = "bad_mode"
	CodeSymlink         = "symlink"
	CodeGitInternal     = "git_internal"
	CodeGitlink         = "gitlink"
	CodeTooLarge        = "too_large"
	CodeMalformed       = "malformed"
	CodeContextMismatch = "context_mismatch"
	CodeDuplicateFile   = "duplicate_file"
	CodeSecret          = "secret"
)

// Refusal says that a patch, or a folder that should become one, is not taken.
// It is an answer for the agent and for people, not a failure of the server.
type Refusal struct {
	Code    string   `json:"code"`
	Path    string   `json:"path"` // the first path concerned, raw; "" when none is
	Message string   `json:"message"`
	Files   []string `json:"files"` // every path concerned, raw, in order
}

// Error is the sentence, with the code in front.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// RefusalOf finds the refusal in err, nil when there is none.
func RefusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

// maxNamed is how many paths a refusal lists; a hostile folder may hold millions.
const maxNamed = 1000

func refuse(code, path, format string, args ...any) *Refusal {
	r := &Refusal{Code: code, Path: path, Message: fmt.Sprintf(format, args...)}
	if path != "" {
		r.Files = []string{path}
	}
	return r
}

// refuseAll is a refusal of several files; format gets the first name and "and N more" as one text.
func refuseAll(code string, files []string, format string, args ...any) *Refusal {
	if len(files) > maxNamed {
		files = files[:maxNamed]
	}
	r := refuse(code, files[0], format, args...)
	r.Files = files
	return r
}

// named is "x", or "x and 3 more".
func named(files []string) string {
	if len(files) == 1 {
		return Shown(files[0])
	}
	return fmt.Sprintf("%s and %d more", Shown(files[0]), len(files)-1)
}

// The codes of a SourceError.
const (
	SourceMissing       = "source_missing"
	SourceNotRepository = "source_not_repository"
	SourceEmpty         = "source_empty"
	SourceNoBranch      = "source_no_branch"
	SourceAuth          = "source_auth"
	SourceUnreachable   = "source_unreachable"
)

// SourceError says that a configured repository cannot be read or written as
// it is: what is wrong and what a person can do about it.
type SourceError struct {
	Code       string
	Repository string
	Message    string
	Err        error
}

func (e *SourceError) Error() string { return e.Message }

// Unwrap returns git's own error, if there was one.
func (e *SourceError) Unwrap() error { return e.Err }

// Temporary reports whether the same call may succeed later without a change of configuration.
func (e *SourceError) Temporary() bool { return e.Code == SourceUnreachable }

// Moved says that the branch is no longer where the approval saw it, and that
// the approval does not carry over.
type Moved struct {
	Branch  string
	From    string   // the commit that the approval was made on
	To      string   // where the branch is now; "" when it is gone
	Commits int      // how many commits lie between
	Files   []string // changed paths that the branch changed too; empty when only the lease was lost
	Why     MovedWhy // "": the branch went on
}

// MovedWhy says why an approval cannot carry over, whatever the files are.
type MovedWhy string

// Why a yes lands nothing on the branch as it is.
const (
	MovedRewound MovedWhy = "rewound" // the approval's base is not in its history any more
	MovedForeign MovedWhy = "foreign" // the commit has another history than the one that was approved
	MovedUnnamed MovedWhy = "unnamed" // asked by an older version without the name of a branch
)

func (e *Moved) Error() string {
	switch e.Why {
	case MovedRewound:
		return e.Branch + " was rewound: it no longer has the commit that this change was made on."
	case MovedForeign:
		return "The commit of this change brings more history than what was approved. Nothing was landed."
	case MovedUnnamed:
		return "This change was asked about without the name of a branch to land on. It is asked again for " + e.Branch + "."
	}
	if len(e.Files) == 0 {
		return e.Branch + " moved while the change was landing. Nothing was landed."
	}
	return fmt.Sprintf("%s moved and this change no longer applies as approved: %s.", e.Branch, named(e.Files))
}

// DirtyFolder says that the branch is checked out in a folder with work in it
// that landing would overwrite. Nothing was changed.
type DirtyFolder struct {
	Repository string
	Folder     string
	Files      []string // paths in the way, relative to the folder; may be empty when git alone refused
	Reason     string   // "uncommitted" or "in_the_way"
}

func (e *DirtyFolder) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The folder of %s ", e.Repository)
	switch {
	case e.Reason == "in_the_way" && len(e.Files) > 0:
		fmt.Fprintf(&b, "already has %s, which this change adds", named(e.Files))
	case len(e.Files) > 0:
		fmt.Fprintf(&b, "has changes that are not committed (%s)", named(e.Files))
	default:
		b.WriteString("has changes that are not committed")
	}
	b.WriteString(", so the branch was not moved. The approval stands. Commit, stash or move them, then Retry.")
	return b.String()
}

// Conflict says that a three-way merge or a revert does not come out clean.
type Conflict struct {
	What  string // "merge" or "revert"
	Files []string
}

func (e *Conflict) Error() string {
	if len(e.Files) == 0 {
		return "The " + e.What + " does not come out clean."
	}
	return fmt.Sprintf("The %s does not come out clean: the same lines changed since in %s.", e.What, named(e.Files))
}

// Rejected says that the other side refused the push by a rule of its own (a
// hook, a protected branch). A retry helps only after somebody changed that.
type Rejected struct {
	Repository string
	Ref        string
	Reason     string
	Said       string // what its hooks printed for whoever pushes, in one line; "" for nothing
}

func (e *Rejected) Error() string {
	said := ""
	if e.Said != "" {
		said = " It says: " + e.Said
	}
	return fmt.Sprintf("%s refused %s: %s.%s The approval stands. Change the rule there, or set deliver: branch for it, then Retry.",
		e.Repository, strings.TrimPrefix(e.Ref, "refs/heads/"), e.Reason, said)
}

// ErrMissing: an object that was asked for is not in the mirror.
var ErrMissing = errors.New("object is not in the mirror")
