package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// Movement is how a branch moved since a change was made on it.
type Movement struct {
	Head      string // the commit where it is now, "" where it was
	Commits   int    // new ones; 0: not counted
	More      bool   // there are more than that
	Rewritten bool   // commits that the change stands on are not on it any more
	Fits      patch.Carried
	// Overtaken says that a yes would land nothing, as Request.Overtaken does of what is stored.
	Overtaken string
}

// Branches looks where branches are now. It runs git, so it is asked outside transactions.
type Branches interface {
	// Heads are the commits of branches of a repository, by the names of the branches, after
	// one look at the repository. What could not be read is missing, and the error says why.
	Heads(ctx context.Context, repository string, branches []string) (map[string]string, error)
	// Moved compares a change with its target branch, at which it looks.
	Moved(ctx context.Context, v Revision, repository string) (Movement, error)
	// Since is Moved by what the last look brought.
	Since(ctx context.Context, v Revision, repository string) (Movement, error)
}

// SetBranches says who looks at branches; without one a change is overtaken only once its
// landing finds that out.
func (g *Gateway) SetBranches(b Branches) { g.branches.Store(&b) }

// renewable reports whether the agent can make the current revision again on the branch of
// today without a loss: an edit of a person's, their choice of files and what a revert puts
// back are not the agent's to make. A yes to those is asked again with both combined.
func (r Request) renewable() bool {
	return r.IsPatch() && r.Revision.Made == "" && r.RevertOf == ""
}

// overtakes is what the movement means for a yes to r; nil: it may land, or is asked again
// with nothing lost.
func (m Movement) overtakes(r Request) *patch.Overtaken {
	v := r.Revision
	rewound := m.Head != "" && m.Rewritten
	if m.Head == "" || !r.renewable() || !rewound && (m.Fits.OK || v.Delivery().Pushes()) {
		return nil
	}
	moved := &patch.Moved{Branch: v.Base.Branch, From: v.Base.Commit, To: m.Head}
	if moved.Files = m.Fits.Moved; rewound {
		moved.Why = patch.MovedRewound
	}
	return new(moved.Overtaken())
}

// Moved looks where the branch of a pending patch is. What that means for a yes is stored,
// so that every place that shows the request says the same.
func (g *Gateway) Moved(ctx context.Context, r Request) (Movement, error) {
	b := g.branches.Load()
	if b == nil {
		return Movement{}, nil
	}
	return g.moved(ctx, r, (*b).Moved)
}

// moved is Moved by one of the two ways to compare.
func (g *Gateway) moved(ctx context.Context, r Request, compare func(context.Context, Revision, string) (Movement, error)) (Movement, error) {
	if r.State != Pending || !r.IsPatch() {
		return Movement{}, nil
	}
	m, err := compare(ctx, r.Revision, r.Repository)
	if err != nil {
		return m, err
	}
	found := m.overtakes(r)
	now := r
	now.Revision.Overtaken = found
	m.Overtaken = now.Overtaken()
	if same(r.Revision.Overtaken, found) {
		return m, nil
	}
	err = g.inTask(ctx, r.TaskID, func(tx Tx) error {
		cur, err := tx.Request(ctx, r.ID)
		if err != nil || cur.State != Pending || cur.Revision.N != r.Revision.N || same(cur.Revision.Overtaken, found) {
			return err
		}
		if err := overtake(ctx, tx, cur, found); err != nil {
			return err
		}
		return tx.SaveRequest(ctx, cur)
	})
	return m, err
}

// same reports whether two looks say the same to people: where exactly the branch is does
// not matter.
func same(a, b *patch.Overtaken) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Why == b.Why)
}

// overtake puts what was found onto the current revision, with its event. Who calls it
// saves r.
func overtake(ctx context.Context, tx Tx, r *Request, found *patch.Overtaken) error {
	was := r.Revision.Overtaken
	r.Revision.Overtaken = found
	said := event.OvertakenData{About: r.about(), Fits: found == nil, Message: r.fate()}
	found = cmp.Or(found, was)
	said.Branch, said.NewBase, said.Files = found.Branch, found.Head, found.Files
	return tx.Append(ctx, r.event("gatehouse", said))
}

// fate is what a yes would come to now, as a sentence of its own.
func (r Request) fate() string {
	if o := r.Revision.Overtaken; o != nil {
		return fmt.Sprintf("A yes to this would land nothing: %s.", o.Why)
	}
	return "A yes to this may land again: its branch is where it was."
}

// Overtaken says of a pending request that a yes would land nothing, and why; "" where it
// may land. Whoever shows it offers Renew in place of Approve.
func (r Request) Overtaken() string {
	if r.State != Pending || r.Revision.Overtaken == nil {
		return ""
	}
	return r.fate()
}

// OvertakenBriefly is Overtaken for a line of a list: what happened, and what to do.
func (r Request) OvertakenBriefly() string {
	if r.Overtaken() == "" {
		return ""
	}
	return fmt.Sprintf("%s: a yes lands nothing; ask for revision %d", r.Revision.Overtaken.Briefly(), r.Revision.N+1)
}

// missed is what a yes to revision v came to.
func (v Revision) missed() string {
	why := "the branch moved meanwhile"
	if v.Overtaken != nil {
		why = v.Overtaken.Why
	}
	return fmt.Sprintf("Nothing landed: %s. Revision %d asks again.", why, v.N+1)
}

// Missed says of an approved request that its yes lands nothing because the branch changed
// meanwhile; "" where it lands. It is the answer to that yes.
func (r Request) Missed() string {
	switch v := r.Revision; {
	case r.State == Stale || r.State == Approved && v.Overtaken != nil:
		return v.missed()
	case r.State == Pending && v.Overtaken != nil:
		return r.fate()
	}
	return ""
}

// MissedBy is Missed for somebody who comes back later: their newest yes was to the current
// revision, or to the one before, and landed nothing. "" else.
func (g *Gateway) MissedBy(ctx context.Context, r Request, userID string) (string, error) {
	i := len(r.Decisions) - 1
	for i >= 0 && r.Decisions[i].UserID != userID {
		i--
	}
	if i < 0 || userID == "" || r.Decisions[i].Verdict != Approve {
		return "", nil
	}
	switch n := r.Decisions[i].Revision; {
	case n == r.Revision.N:
		return r.Missed(), nil
	case n != r.Revision.N-1 || r.State != Pending && r.State != Superseded:
		return "", nil
	}
	all, err := g.store.Revisions(ctx, r.ID)
	if err != nil {
		return "", fmt.Errorf("reading what became of a yes: %w", err)
	}
	for _, v := range all {
		if v.N == r.Decisions[i].Revision && v.State == Stale {
			return v.missed(), nil
		}
	}
	return "", nil
}

// Renew is what a place offers in place of Approve where a change was overtaken: the agent
// makes the next revision anew, on the branch as it is today. It is stored as the request
// for changes that it is.
const Renew Verdict = "renew"

// renewed is the ballot that Renew stands for; others are what they are.
func (b Ballot) renewed() Ballot {
	if b.Verdict != Renew {
		return b
	}
	b.Verdict, b.StartOver, b.anew = RequestChanges, true, true
	b.Comment = strings.TrimSpace(renewWords + " " + b.Comment)
	return b
}

// renewWords stand on record before what the person adds, and are not told again.
const renewWords = "The branch changed meanwhile. Make this change again on it as it is today."

// asked is what the ballot asks the agent for, as it is told in later rounds.
func (b Ballot) asked(by string, revision int) (asked []agent.Earlier) {
	comment := b.Comment
	if b.anew {
		comment = strings.TrimSpace(strings.TrimPrefix(comment, renewWords))
	}
	if comment != "" {
		asked = append(asked, agent.Earlier{Revision: revision, By: by, Comment: comment})
	}
	for _, c := range b.Comments {
		asked = append(asked, agent.Earlier{Revision: revision, By: by, Remark: &c})
	}
	return asked
}

// stays refuses a Renew while the branch is where it was: its words would be false, under the
// person's name. A branch that could not be looked at is no reason to refuse it.
func (g *Gateway) stays(ctx context.Context, r Request, b Ballot) *orchestrator.Error {
	if !b.anew || g.branches.Load() == nil || !r.IsPatch() {
		return nil
	}
	m, err := g.Moved(ctx, r)
	switch {
	case err != nil:
		g.logError(ctx, "the branch of a change could not be looked at before it is made again", err)
		return nil
	case m.Head != "":
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeConflict, "%s has not moved since this revision was made, so there is nothing to make again. Nothing was stored. Request changes with a comment that says what should be different, starting over if the agent is to begin anew.", r.Revision.Base.Branch)
}

// lookEvery is how often the branches of what waits for people are looked at.
const lookEvery = 5 * time.Second

// Standing is what a look at the branches needs of a pending patch that the agent could make
// again; see renewable.
type Standing struct {
	RequestID  string
	Repository string
	Revision   int
	Base       patch.Base
	Overtaken  bool
}

// looks is what LookAtBranches remembers: where the branch of a revision was, so that git
// compares again only once it moved, and why a branch could not be looked at.
type looks map[string]string

// LookAtBranches finds what was overtaken while it waited. It reads little of each that waits
// and looks once at each repository in which something does; only where a branch moved is a
// change read whole and compared with it. One round runs at a time.
func (g *Gateway) LookAtBranches(ctx context.Context) error {
	b := g.branches.Load()
	if b == nil {
		return nil
	}
	all, err := g.store.Standing(ctx)
	if err != nil {
		return fmt.Errorf("reading what waits on branches: %w", err)
	}
	byRepository := map[string][]Standing{}
	for _, s := range all {
		byRepository[s.Repository] = append(byRepository[s.Repository], s)
	}
	known := looks{}
	var failed error
	for repository, wait := range byRepository {
		failed = errors.Join(failed, g.lookAt(ctx, *b, repository, wait, known))
	}
	g.looked = known
	return failed
}

// lookAt is LookAtBranches for one repository.
func (g *Gateway) lookAt(ctx context.Context, b Branches, repository string, wait []Standing, known looks) error {
	var branches []string
	for _, s := range wait {
		if !slices.Contains(branches, s.Base.Branch) {
			branches = append(branches, s.Base.Branch)
		}
	}
	heads, failed := b.Heads(ctx, repository, branches)
	if failed != nil {
		why := "! " + repository
		known[why] = failed.Error()
		if g.looked[why] == failed.Error() { // said once, not at each look
			failed = nil
		} else {
			failed = fmt.Errorf("looking at the branches of %s: %w", repository, failed)
		}
	}
	for _, s := range wait {
		head, revision := heads[s.Base.Branch], fmt.Sprintf("%s %d", s.RequestID, s.Revision)
		if head == "" {
			continue
		}
		if known[revision] = head; g.looked[revision] == head || head == s.Base.Commit && !s.Overtaken {
			continue
		}
		r, err := g.store.Request(ctx, s.RequestID)
		if err == nil && r.Revision.N == s.Revision { // else it is looked at in the next round
			_, err = g.moved(ctx, r, b.Since)
		}
		if err != nil {
			delete(known, revision)
			failed = errors.Join(failed, fmt.Errorf("comparing %s with %s: %w", s.RequestID, s.Base.Branch, err))
		}
	}
	return failed
}

// offers are the verdicts of a card that lets a yes in, where the change may have been
// overtaken.
func (r Request) offers(verdicts []Verdict) []Verdict {
	if r.Overtaken() == "" {
		return verdicts
	}
	return append([]Verdict{Renew}, slices.DeleteFunc(verdicts, func(v Verdict) bool { return v == Approve })...)
}

// overtaken looks at the branch for a yes that is about to count; an error of git's is no
// reason to refuse it, for the landing looks again.
func (g *Gateway) overtaken(ctx context.Context, r Request, b Ballot) (found *patch.Overtaken, looked bool) {
	look := g.branches.Load()
	if look == nil || b.Verdict != Approve || b.Files != nil || !r.renewable() {
		return nil, false
	}
	m, err := (*look).Moved(ctx, r.Revision, r.Repository)
	if err != nil {
		g.logError(ctx, "the branch of a change could not be looked at before its yes", err)
		return nil, false
	}
	return m.overtakes(r), true
}
