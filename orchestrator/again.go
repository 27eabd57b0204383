package orchestrator

import (
	"context"
	"math"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
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
	from := Kept{Tree: w.Tree, Commit: w.TreeCommit, Bundle: w.TreeBundle}
	stand, declined, runs := w.Stand, w.Declined, w.Runs
	if a.Feedback != nil {
		a.Feedback.Edited = !a.StartOver && (w.Made != nil || w.Kept != nil && w.Kept.Tree != w.Tree)
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
		kept := from
		w.Stand, w.From, w.Kept, w.Declined = stand, &from, &kept, declined
		n, err := tx.CopyTurns(ctx, d, d.ID, runs, math.MaxInt32, "")
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
	if w.Kept == nil || w.From != nil && w.Kept.Bundle == w.From.Bundle {
		return nil
	}
	return tx.DropBlob(ctx, w.Kept.Bundle)
}

// start is what a checkout is made of beside its base; nil is the base alone.
func (w *Work) start() *Kept {
	if w.Kept != nil {
		return w.Kept
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
