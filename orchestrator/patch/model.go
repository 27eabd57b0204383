package patch

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// Base is a point of a branch.
type Base struct {
	Branch string // short name
	Commit string // full id
	Tree   string // full id
	// At is when the commit was made, as it says itself; zero where that was not looked up.
	At time.Time `json:",omitzero"`
}

// Target is the branch on which a change that was made on b lands; "" where an older
// version took something for a branch that is none, so that nothing may land unasked.
func (b Base) Target() string {
	if CheckRef(b.Branch) != nil {
		return ""
	}
	return b.Branch
}

// Snapshot is what a folder looked like.
type Snapshot struct {
	Tree    string
	Ignored []string // what .gitignore left out (folders end in "/"), at most 1,000 names
}

// Change is one path that differs between two trees. Renames are a deletion and an addition here.
type Change struct {
	Path    string
	Status  byte   // 'A', 'M', 'D' or 'T' (another kind of entry)
	OldMode string // six digits; "000000" when absent
	NewMode string
	OldID   string // all zeros when absent
	NewID   string
}

// Rules are what Validate holds a patch against.
type Rules struct {
	Writes  []string // globs that the agent may write; nil: anything
	Protect []string // globs that nobody may write; added to the repository's own
	Limits  Limits   // zero fields: the mirrors' limits
}

// RecordSpec is one revision to commit.
type RecordSpec struct {
	Key        string // names refs/gatehouse/rev/<key>; letters, digits, ".", "_" and "-"
	Branch     string // an existing gatehouse/ branch to move; "" makes a name from Agent, Title and Delegation
	Base       string // commit that becomes the parent
	Tree       string
	Title      string // first line of the message, and the slug of a new branch
	Body       string
	Task       string
	Delegation string
	Agent      string
	Editors    []string // people who changed what the agent made; one Edited-by line each
	Digest     string
	At         time.Time // both dates of the commit, cut to seconds: the same spec gives the same commit
}

// Revision is a recorded tree.
type Revision struct {
	Branch string
	Commit string
	Bundle []byte // a git bundle of what the base commit does not reach
}

// LandSpec is a yes that is about to be carried out.
type LandSpec struct {
	Base       Base   // what the approval was made on
	Commit     string // the agent's commit
	Branch     string // the agent's branch; needed for DeliverBranch
	Tree       string // the approved tree
	Title      string
	Task       string
	Delegation string
	Agent      string
	Digest     string
	Editors    []string // as in RecordSpec
	Requester  string   // one Requested-by line
	Approvers  []string // one Approved-by line each
	At         time.Time
}

// Intent is one push, decided before it is made and stored by the caller, so
// that after a crash the same push can be made again or found done.
type Intent struct {
	Ref     string    `json:"ref"`   // full name at the source
	Old     string    `json:"old"`   // the lease; "" means that the ref must not exist
	New     string    `json:"new"`   // what the ref will be: equals Merge
	Merge   string    `json:"merge"` // the commit that landing is recorded with: a merge, or for DeliverBranch the approved tree on its base
	Tree    string    `json:"tree"`
	Commit  string    `json:"commit"`  // the agent's commit
	Carried bool      `json:"carried"` // the base moved elsewhere: Tree is not the approved tree, run the checks on it first
	Onto    Base      `json:"onto"`
	Message string    `json:"message"`
	Name    string    `json:"name"`
	Email   string    `json:"email"`
	At      time.Time `json:"at"`
	Base    string    `json:"base"`    // commit of the approval's base
	Patched string    `json:"patched"` // the approved tree
	Deliver string    `json:"deliver,omitempty"`
	Target  string    `json:"target,omitempty"` // the branch that the approval was given for, also where Ref is the agent's
}

// Outcome is what recovery finds.
type Outcome string

// The outcomes of Landed.
const (
	Landed    Outcome = "landed"     // the merge is reachable from the branch
	PushAgain Outcome = "push_again" // the branch is still where it was
	BaseMoved Outcome = "base_moved" // the branch went elsewhere without the merge
)

// Carried is the answer of CarryOver.
type Carried struct {
	OK    bool
	Tree  string   // the new base with exactly the changed files replaced; "" unless OK
	Moved []string // paths changed on both sides
}

// Review is what people see of a patch: computed from two trees, values only.
type Review struct {
	Files    []File    `json:"files"` // by path
	Added    int       `json:"added"`
	Removed  int       `json:"removed"`
	Warnings []Warning `json:"warnings"` // by code's importance, then path; one per code and path
	Notes    []Note    `json:"notes"`
}

// Warning makes a request careful: people look at it before they may say yes.
type Warning struct {
	Code string `json:"code"`
	Path string `json:"path"` // raw; "" when it is about the whole patch
	Text string `json:"text"` // a plain sentence
}

// Note is worth knowing and does not make a request careful.
type Note struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Status is what happened to a file.
type Status string

// The statuses of a file.
const (
	Added       Status = "added"
	Modified    Status = "modified"
	Deleted     Status = "deleted"
	Renamed     Status = "renamed"
	Copied      Status = "copied"
	ModeChanged Status = "mode" // the mode and nothing else
	TypeChanged Status = "type" // a file became a link, or a link a file
)

// File is one changed file of a review.
type File struct {
	Path       string `json:"path"`
	OldPath    string `json:"old_path"` // differs from Path for renames and copies, else ""
	Status     Status `json:"status"`
	Added      int    `json:"added"`
	Removed    int    `json:"removed"`
	Binary     bool   `json:"binary"`
	OldMode    string `json:"old_mode"` // six digits; "" when absent
	NewMode    string `json:"new_mode"`
	OldSize    int64  `json:"old_size"` // bytes
	NewSize    int64  `json:"new_size"`
	OldBlob    string `json:"old_blob"` // full id; "" when absent
	NewBlob    string `json:"new_blob"`
	Similarity int    `json:"similarity"` // percent, for renames and copies
	Bytes      int64  `json:"bytes"`      // of its added and removed lines, with line feeds; 0 in reviews from before this was measured
	Generated  bool   `json:"generated"`  // also vendored and lock files: pages start them closed
	Reason     string `json:"reason"`     // why Generated: what .gitattributes of the base marks it as, "generated", "vendored", "lock file" or "minified"
	// CopyOf is a file of the base that has exactly the content of this Added one, else "".
	CopyOf string `json:"copy_of,omitempty"`
	// WholeAdded and WholeRemoved count the lines of a renamed or copied file without looking
	// for where it comes from: see Whole.
	WholeAdded   int `json:"whole_added,omitempty"`
	WholeRemoved int `json:"whole_removed,omitempty"`
	// Of a file that was moved or copied, whole or in part: whether a person has approved this
	// very content at this path before. Both are false for other files, and for old requests.
	Unseen   bool `json:"unseen,omitempty"`
	SeenHere bool `json:"seen_here,omitempty"`
}

// Hunk is a run of changed lines with its surroundings.
type Hunk struct {
	OldStart, OldLines int // 1-based; start 0 when the side is empty
	NewStart, NewLines int
	Section            string // what git shows after @@
	Lines              []Line
}

// Line is one line of a hunk.
type Line struct {
	Kind      byte   // '+', '-' or ' '
	Old, New  int    // line numbers; 0 on the side where the line is not
	Text      string // without the line feed, raw bytes
	NoNewline bool   // the file ends here without a line feed
	Spans     []Span // what changed within the line; nil when the line changed as a whole
}

// Span is a range of bytes in a line's Text.
type Span struct{ Start, End int }

// Piece is a part of a text for people.
type Piece struct {
	Text string // what to show: the text itself, or ⟦U+202E⟧ for a risky rune
	Risk string // "" for plain text, else bidi, invisible, control_chars or lookalike
}

// Digest names what a decision is made on: 64 lower-case hex digits of sha256
// over the five values. Each is preceded by its length, so that no two
// different patches share an encoding.
func Digest(repository, branch, baseCommit, tree, delivery string) string {
	delivery = cmp.Or(delivery, DeliverMerge)
	h := sha256.New()
	for _, s := range []string{"gatehouse patch 1", repository, branch, baseCommit, tree, delivery} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Delivery is what a yes does with a change: it lands on Target, or the agent's Branch is
// pushed for people to merge by hand. Every face takes its words from here.
type Delivery struct {
	Mode   string // DeliverMerge (also when empty) or DeliverBranch
	Target string
	Branch string
}

// Pushes reports whether the change is pushed as a branch, and Target stays as it is.
func (d Delivery) Pushes() bool { return d.Mode == DeliverBranch }

// To is the branch on which the commit is afterwards.
func (d Delivery) To() string {
	if d.Pushes() {
		return d.Branch
	}
	return d.Target
}

// As is d with its names as a surface shows them.
func (d Delivery) As(shown func(string) string) Delivery {
	return Delivery{d.Mode, shown(d.Target), shown(d.Branch)}
}

// Done is "landed on main" or "pushed to gatehouse/coder-…".
func (d Delivery) Done() string {
	if d.Pushes() {
		return "pushed to " + d.Branch
	}
	if d.Target == "" {
		return "landed"
	}
	return "landed on " + d.Target
}

// Doing is "landing on main" or "being pushed to gatehouse/coder-…".
func (d Delivery) Doing() string {
	if d.Pushes() {
		return "being pushed to " + d.Branch
	}
	return "landing on " + d.Target
}
