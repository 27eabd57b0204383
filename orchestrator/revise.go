package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// Again says how an agent works once more on a change that people read.
type Again struct {
	Feedback  *agent.Feedback
	Asked     []agent.Earlier // what Feedback asks for, as later rounds are told it
	Revision  int             // number of the revision that it is to make
	StartOver bool            // from the base, with an empty conversation
}

// AskAgain queues a delegation whose revision people want to be different. Its agent goes
// on from the tree of that revision, also where people edited it, and in its conversation;
// what it makes is still judged against the base that the first revision was made on.
func AskAgain(ctx context.Context, tx Tx, d *Delegation, a Again, actor string) error {
	w := &d.Work
	from := Checkpoint{Tree: w.Tree, Commit: w.TreeCommit, Bundle: w.TreeBundle}
	stand, declined, resume, runs := w.Stand, w.Declined, w.Resume, w.Runs
	if a.Feedback != nil {
		a.Feedback.Edited = !a.StartOver && (w.Made != nil || w.Checkpoint != nil && w.Checkpoint.Tree != w.Tree)
	}
	goesOn := !a.StartOver && from.Tree != "" && stand.BaseCommit != ""
	if a.Feedback != nil && !goesOn {
		a.Feedback.Earlier, a.Feedback.Left = w.notSaid(a.Feedback.Comments), w.EarlierLeft
	}
	w.asked(a.Asked)
	if err := renew(ctx, tx, d, a.Feedback); err != nil {
		return err
	}
	w.Revision = a.Revision
	if goesOn {
		w.Stand, w.From, w.Checkpoint, w.Declined, w.Resume = stand, &from, new(from), declined, resume
		n, err := tx.CopyTurns(ctx, d, TurnCopy{From: d.ID, Generation: runs, UpTo: math.MaxInt32})
		if err != nil {
			return err
		}
		w.Carried = n
	}
	return requeue(ctx, tx, d, actor, "changes requested")
}

// The limits of what is kept to be told again. It stands in the row of its delegation.
const (
	maxEarlier      = 200
	maxEarlierBytes = 64 << 10
)

// asked keeps what people asked for; where that is too much, the oldest goes.
func (w *Work) asked(more []agent.Earlier) {
	all := append(slices.Clip(w.Earlier), more...)
	from, size := len(all), 0
	for from > 0 && len(all)-from < maxEarlier && size+all[from-1].Size() <= maxEarlierBytes {
		from--
		size += all[from].Size()
	}
	w.Earlier, w.EarlierLeft = slices.Clone(all[from:]), w.EarlierLeft+from
}

// notSaid is what people asked for before, without the remarks that are open still and so
// are among those that the agent is told anyhow.
func (w *Work) notSaid(told []agent.LineComment) []agent.Earlier {
	return slices.DeleteFunc(slices.Clone(w.Earlier), func(e agent.Earlier) bool {
		return e.Remark != nil && slices.ContainsFunc(told, func(c agent.LineComment) bool {
			return c.Path == e.Remark.Path && strings.Contains(c.Text, e.Remark.Text)
		})
	})
}

// renewal is what an agent is told that makes its change anew since what people approved
// does not fit the branch any more; nil where nobody had asked for anything but the task.
func (w *Work) renewal() *agent.Feedback {
	if len(w.Earlier) == 0 && w.EarlierLeft == 0 {
		return nil
	}
	return &agent.Feedback{Comment: "The branch changed so that the change made so far does not fit it any more. Make it again on the branch as it is today.",
		StartOver: true, Renewed: true, Earlier: w.Earlier, Left: w.EarlierLeft}
}

// RunAgain queues a delegation so that its agent works again from the start, with what
// people said when f is not nil: a conversation begins anew in a fresh checkout.
func RunAgain(ctx context.Context, tx Tx, d *Delegation, f *agent.Feedback, actor, why string) error {
	if err := renew(ctx, tx, d, f); err != nil {
		return err
	}
	return requeue(ctx, tx, d, actor, why)
}

// renew makes d one that never ran, in a new generation. What was said before stays on
// record under the generation that it belongs to.
func renew(ctx context.Context, tx Tx, d *Delegation, f *agent.Feedback) error {
	letGo(d)
	w := &d.Work
	if err := w.dropKept(ctx, tx); err != nil {
		return err
	}
	w.Runs++
	w.Anew = true
	if w.Land != nil {
		w.Revision = w.Land.Revision + 1
	}
	w.Lineage = d.again() // of the product that goes
	w.Session, w.Product, w.ToLand = Session{Feedback: f}, Product{}, ToLand{}
	w.Base.anew()
	d.Result, d.ReadyAt, d.Losses = nil, tx.Now(), 0
	return nil
}

// requeue queues a renewed delegation.
func requeue(ctx context.Context, tx Tx, d *Delegation, actor, why string) error {
	if err := queueAnew(ctx, tx, d); err != nil {
		return err
	}
	said := event.QueuedData{Agent: d.To, Why: event.Given(why)}
	if d.Work.From != nil {
		said.FromRevision = event.Given(d.Work.Revision - 1)
	}
	return tx.Append(ctx, event.Of(d.ID, actor, said))
}

// dropKept removes the kept checkout of the run before. A revision's own bundle stays.
func (w *Session) dropKept(ctx context.Context, tx Tx) error {
	if w.Checkpoint == nil || w.From != nil && w.Checkpoint.Bundle == w.From.Bundle {
		return nil
	}
	return tx.DropBlob(ctx, w.Checkpoint.Bundle)
}

// start is what a checkout is made of beside its base; nil is the base alone.
func (w *Work) start() *Checkpoint {
	if w.Checkpoint != nil {
		return w.Checkpoint
	}
	return w.From
}

// startTree is the tree that a run begins with.
func (w *Work) startTree() string {
	if s := w.start(); s != nil {
		return s.Tree
	}
	return w.BaseTree
}

// stillDeclined are the files that people left out and that the tree leaves out still.
func (r *run) stillDeclined(ctx context.Context, tree string) ([]string, error) {
	if len(r.d.Work.Declined) == 0 {
		return nil, nil
	}
	changes, err := r.mirror.Changes(ctx, r.d.Work.BaseTree, tree)
	left := slices.Clone(r.d.Work.Declined)
	for _, c := range changes {
		left = slices.DeleteFunc(left, func(p string) bool { return p == c.Path })
	}
	return left, err
}

// Made says how people made a tree of the agent's: by leaving files out, or by editing.
type Made struct {
	How      string   `json:"how"`                // files or edit
	From     int      `json:"from"`               // the revision that it was made from
	Editors  []Editor `json:"editors,omitempty"`  // whose hand is in it, the newest last; they cannot approve it
	Declined []string `json:"declined,omitempty"` // changed files of From that were left out
	// Yes is the id of the decision that made it and counts on it, too; "" when everybody
	// is asked anew.
	Yes string `json:"yes,omitempty"`
}

// Editor is a person who edited a patch.
type Editor struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Revised is a tree that a person made of a revision: recorded in git, not yet stored.
type Revised struct {
	From   string // tree of the revision that it was made from
	Tree   string
	Digest string
	Record patch.Revision
	Paths  []string // what it changes on its base
}

// editorNames are the people whose hand is in a tree, for trailers.
func (w *Work) editorNames() []string {
	if w.Made == nil {
		return nil
	}
	return each.Of(w.Made.Editors, func(e Editor) string { return e.Name })
}

// SelectFiles makes the tree of a revision in which only these paths are changed. A
// choice that cannot be made is a bad request that names the path.
func (e *Engine) SelectFiles(ctx context.Context, delegationID string, o Order, paths []string) (Revised, error) {
	d, m, err := e.opened(ctx, delegationID, o)
	if err != nil {
		return Revised{}, err
	}
	tree, err := m.Select(ctx, o.Base.Tree, o.Tree, paths)
	if refusal := patch.RefusalOf(err); refusal != nil {
		return Revised{}, &Error{Code: CodeBadRequest, Message: refusal.Message, Err: err}
	}
	if err != nil {
		return Revised{}, err
	}
	return e.revised(ctx, d, m, o, tree, d.Work.editorNames())
}

// EditFiles makes the tree of a revision that a person has edited: files with their new
// texts, or a unified diff on top of the revision. It obeys the rules of the agent's
// own patch.
func (e *Engine) EditFiles(ctx context.Context, delegationID string, o Order, edits []patch.FileEdit, diff, editor string) (Revised, error) {
	d, m, err := e.opened(ctx, delegationID, o)
	if err != nil {
		return Revised{}, err
	}
	tree := o.Tree
	if diff != "" {
		tree, err = m.ApplyText(ctx, tree, []byte(diff))
	} else {
		tree, err = m.EditFiles(ctx, tree, edits)
	}
	if err != nil {
		return Revised{}, refusedEdit(err)
	}
	if tree == o.Tree {
		return Revised{}, Errorf(CodeBadRequest, "The edit changes nothing, so there is nothing to ask about. Approve the revision as it is, or edit it.")
	}
	return e.revised(ctx, d, m, o, tree, append(d.Work.editorNames(), editor))
}

// refusedEdit gives a refusal the form of an answer to people.
func refusedEdit(err error) error {
	if refusal := patch.RefusalOf(err); refusal != nil {
		return &Error{Code: refusal.Code, Message: refusal.Message, Err: err}
	}
	return err
}

// revised validates and records a tree that a person made.
func (e *Engine) revised(ctx context.Context, d Delegation, m *patch.Mirror, o Order, tree string, editors []string) (Revised, error) {
	v := Revised{From: o.Tree, Tree: tree}
	if o.Base.Target() == "" {
		return v, Errorf(CodeConflict, "This change was asked about by an older version, without the name of a branch to land on. Approve it to be asked again with one, or reject it.")
	}
	if tree == o.Base.Tree {
		return v, Errorf(CodeBadRequest, "Nothing of the change would be left to land. Reject it instead.")
	}
	repo, err := e.Config().repository(d.Repository)
	if err != nil {
		return v, err
	}
	spec, _ := e.Config().Agents.Get(d.To)
	if err := m.Validate(ctx, o.Base.Tree, tree, patch.Rules{Writes: spec.Writes, Protect: repo.Protect}); err != nil {
		return v, refusedEdit(err)
	}
	changes, err := m.Changes(ctx, o.Base.Tree, tree)
	if err != nil {
		return v, err
	}
	for _, c := range changes {
		v.Paths = append(v.Paths, c.Path)
	}
	t, err := e.Store.Task(ctx, d.TaskID)
	if err != nil {
		return v, err
	}
	v.Digest = patch.Digest(repo.Name, o.Base.Branch, o.Base.Commit, tree, deliver(repo))
	v.Record, err = m.Record(ctx, recordSpec(t, d, o.Base.Commit, tree, v.Digest, editors))
	return v, err
}

// recordSpec is the commit of a tree on the agent's branch.
func recordSpec(t Task, d Delegation, base, tree, digest string, editors []string) patch.RecordSpec {
	return patch.RecordSpec{Key: fmt.Sprintf("%s-%s", d.ID, digest[:12]), Branch: d.Work.AgentBranch, Base: base, Tree: tree, Title: Title(t.Text),
		Task: t.ID, Delegation: d.ID, Agent: d.To, Digest: digest, Editors: editors, At: d.CreatedAt}
}

// ReadFile reads a file of a revision's result, or of its base; found is false where
// there is none. One of more than max bytes is cut there and comes with patch.ErrCut.
func (e *Engine) ReadFile(ctx context.Context, delegationID string, o Order, base bool, path string, max int64) (content []byte, found bool, err error) {
	_, m, err := e.opened(ctx, delegationID, o)
	if err != nil {
		return nil, false, err
	}
	tree := o.Tree
	if base {
		tree = o.Base.Tree
	}
	return m.File(ctx, tree, path, max)
}

// opened is the mirror of a delegation's repository with the objects of a revision of
// its, which another node may have made.
func (e *Engine) opened(ctx context.Context, delegationID string, o Order) (Delegation, *patch.Mirror, error) {
	d, err := e.Store.Delegation(ctx, delegationID)
	if err != nil {
		return d, nil, err
	}
	m, _, err := e.mirror(d.Repository)
	if err != nil {
		return d, nil, Errorf(CodeUnavailable, "The repository %q is not configured any more, so nothing can be made of this change. Add it back to gatehouse.yaml. (%w)", d.Repository, err)
	}
	if m.Has(ctx, o.Base.Tree) && m.Has(ctx, o.Tree) {
		return d, m, nil
	}
	bundle, err := e.Store.Blob(ctx, o.Bundle)
	if err != nil {
		return d, nil, err
	}
	err = m.Import(ctx, bundle, o.Commit)
	if _, ok := errors.AsType[*patch.SourceError](err); ok {
		err = Errorf(CodeUnavailable, "The repository %s could not be read: %w", d.Repository, err)
	}
	return d, m, err
}
