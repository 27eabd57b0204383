package patch

import "time"

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
