package views

import "time"

// ReviewPage is `/approvals/{id}`.
type ReviewPage struct {
	Chrome
	ID            string
	TaskID        string
	DelegationID  string
	Title         string // the task's first line; foreign
	State         string
	Whose         string    // "you or ann"
	TooFew        string    // why it cannot get enough yeses; first line when set
	Since         time.Time // when it was asked
	ExpiresAt     time.Time // zero: never
	Revision      int       // the one that is shown
	Against       int       // the diff shows only what changed since this revision; 0: all
	WholeFiles    int       // size of the whole revision, where Against is set
	WholeAdded    int
	WholeRemoved  int
	Newest        int // the newest there is; more than Revision: superseded while open
	NewestAt      time.Time
	Revisions     []int
	Digest        string // of the shown revision
	Repository    string
	Target        string // branch where it lands
	Branch        string // the agent's
	Base          string
	Commit        string // landed merge commit
	Requester     string
	Via           string
	Chain         []string
	Agent         string
	Says          string // what the agent wrote
	Rule          RuleLine
	FourEyes      bool // false: the page says that the asker may approve
	CanDecide     bool
	MayNot        string // why this person cannot decide; empty when they can
	CanWithdraw   bool
	CanRevert     bool
	CanLand       bool   // landing was refused and may be tried again
	LandProblem   string // why
	BaseMoved     string // "main moved by 2 commits; this change still applies unchanged"
	Outcome       *Outcome
	Refused       string // why this person's last verdict was not taken
	Comment       string // what they wrote, kept
	Decisions     []DecisionRow
	Warnings      []Warning
	Notes         []Note
	Checks        []CheckRow
	Files         []DiffFile
	Added         int
	Removed       int
	Split         bool // ?view=split
	MoreFilesHref string
	CutNote       string // what of the diff is not on this page, with its size
	Careful       bool
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
	Channel string
	At      time.Time
	Comment string
	Commit  string
}

// DecisionRow is one decision on some revision.
type DecisionRow struct {
	User    string
	Channel string
	Verdict string // approve, reject, request_changes, withdraw
	Comment string
	Digest  string
	At      time.Time
}

// Warning is something a person has to look at before saying yes.
type Warning struct {
	Code string
	Path string
	Text string
	Href string // anchor of the file: #F3
}

// Note is something good to know that does not make a request careful.
type Note struct {
	Code string
	Text string
}

// CheckRow is the result of one check on the agent's tree.
type CheckRow struct {
	Command  string
	OK       bool
	Duration time.Duration // 0: not measured
	Output   string
}

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

// size is what a yes lands: the whole revision, also beside a comparison.
func (p ReviewPage) size() (files, added, removed int) {
	if p.Against > 0 {
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

// open says whether verdicts can still be given on what is shown.
func (p ReviewPage) open() bool {
	return !p.Superseded() && p.State == "pending"
}
