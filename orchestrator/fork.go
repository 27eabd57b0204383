package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// Fork asks for a new task that goes on from a turn of a conversation.
type Fork struct {
	DelegationID string // or the task's id: its root
	Turn         int    // the last turn that is kept; 0 is the newest
	RequesterID  string
	Requester    string
	Via          origin.Origin
}

// forkPoint is what a fork is made of.
type forkPoint struct {
	task  Task
	d     Delegation
	turns []agent.Turn // kept ones
	files *Kept        // nil: the checkout was as its base
	data  []byte       // bundle of files
}

// Fork makes a task of the same agent and text whose conversation, files and remaining
// budget are those of a turn. The first task goes on, or stays ended, as it is. A cut
// between a model's calls and their results is moved to before the calls. Turns that are
// taken over cost the new task nothing.
func (e *Engine) Fork(ctx context.Context, f Fork) (Task, Delegation, error) {
	o, err := e.origin(ctx, f)
	if err != nil {
		return Task{}, Delegation{}, err
	}
	now := e.Now().UTC()
	t := Task{ID: NewID(TaskPrefix, now), RootID: NewID(DelegationPrefix, now), Agent: o.d.To, Text: o.d.Text, Repository: o.d.Repository,
		Ref: o.task.Ref, Complexity: o.task.Complexity, RequesterID: f.RequesterID, Requester: f.Requester, Via: f.Via, Chat: o.task.Chat, Source: o.task.Source, ForkOf: o.d.ID, CreatedAt: now}
	if t.Budget, err = e.leftAt(ctx, o); err != nil {
		return Task{}, Delegation{}, err
	}
	root := Delegation{ID: t.RootID, TaskID: t.ID, To: o.d.To, Text: o.d.Text, Chain: chain.New(e.Config().Settings.MaxDepth),
		HopKey: "root", Repository: o.d.Repository, Requester: f.Requester, Work: Work{
			Terms: Terms{Handover: o.d.Work.Handover, Independent: o.d.Work.Independent}, Session: Session{Feedback: o.d.Work.Feedback}}}
	bornQueued(&root, now)
	root.Work.Budget, root.Work.Lineage = e.budgetAnew(&t), o.d.goesOn(&o.task, ForFork)
	if err := e.forkFiles(ctx, &o, &root); err != nil {
		return Task{}, Delegation{}, err
	}
	upTo := len(o.turns)
	t, root, _, err = e.create(ctx, t, root, func(tx Tx) error {
		kept := ""
		if k := root.Work.Kept; k != nil {
			kept = k.Commit + " " + k.Tree
			if err := tx.PutBlob(ctx, k.Bundle, "bundle", o.data); err != nil {
				return err
			}
		}
		if _, err := tx.CopyTurns(ctx, &root, o.d.ID, o.d.Work.Runs, upTo, kept); err != nil {
			return err
		}
		return tx.Append(ctx, event.Of(root.ID, f.Requester, event.ForkedData{Agent: root.To, FromTask: o.task.ID, From: o.d.ID, Turn: upTo}))
	})
	if err != nil {
		return Task{}, Delegation{}, err
	}
	err = e.Store.InTask(ctx, o.task.ID, func(tx Tx) error {
		return tx.Append(ctx, event.Of(o.d.ID, f.Requester, event.ForkedData{Agent: o.d.To, Task: t.ID, Delegation: root.ID, Turn: upTo}))
	})
	return t, root, err
}

// origin reads and checks what is to be forked.
func (e *Engine) origin(ctx context.Context, f Fork) (forkPoint, error) {
	d, err := e.lookUp(ctx, f.DelegationID)
	if err != nil {
		return forkPoint{}, err
	}
	o := forkPoint{d: d}
	spec, ok := e.Config().Agents.Get(d.To)
	if !ok || !e.traits(spec).Conversation {
		return o, Errorf(CodeConflict, "%s is no model agent, so there is no conversation to go on from. Send a new task.", d.To)
	}
	if o.task, err = e.Store.Task(ctx, d.TaskID); err != nil {
		return o, err
	}
	if err := stillHere(&o.task); err != nil {
		return o, err
	}
	if err := badRef(o.task.Ref); err != nil {
		return o, err
	}
	all, err := e.Store.Turns(ctx, d.ID, d.Work.Runs)
	if err != nil {
		return o, err
	}
	last := f.Turn
	if last == 0 {
		last = len(all)
	}
	if last < 1 || last > len(all) {
		return o, Errorf(CodeBadRequest, "There is no turn %d: this conversation has %d. Name one of them.", f.Turn, len(all))
	}
	o.turns = whole(all[:last])
	if len(o.turns) == 0 {
		return o, nil
	}
	commit, tree, err := e.Store.KeptAt(ctx, d.ID, d.Work.Runs, len(o.turns))
	if err == nil && commit != "" {
		o.files = &Kept{Commit: commit, Tree: tree}
	}
	return o, err
}

// whole cuts turns so that every call among them has its result (O18).
func whole(turns []agent.Turn) []agent.Turn {
	if n := len(turns); n > 0 && len(turns[n-1].Message.Calls()) > 0 {
		return turns[:n-1]
	}
	return turns
}

// forkFiles gives root the checkout that its conversation knows, on the commit that the
// first one began on. The change is shown against that commit, also where the first
// delegation worked on its caller's snapshot.
func (e *Engine) forkFiles(ctx context.Context, o *forkPoint, root *Delegation) error {
	w := o.d.Work
	if o.d.Repository == "" || w.BaseCommit == "" || len(o.turns) == 0 {
		return nil
	}
	m, _, err := e.mirror(o.d.Repository)
	if err != nil {
		return Errorf(CodeUnavailable, "The repository %q is not configured any more, so the fork would have no files. Add it back to gatehouse.yaml. (%w)", o.d.Repository, err)
	}
	files, bundle, holder := w.BaseTree, w.BaseBundle, w.BaseSaved
	if o.files != nil {
		files, bundle, holder = o.files.Tree, "", o.files.Commit
		if w.Kept != nil {
			bundle, holder = w.Kept.Bundle, w.Kept.Commit
		}
	}
	if err := e.fetchTree(ctx, m, files, bundle, holder, w.BaseCommit); err != nil {
		return err
	}
	base, err := m.TreeOf(ctx, w.BaseCommit)
	if err != nil {
		return err
	}
	root.Work.Stand = w.Stand
	root.Work.BaseTree = base
	if files == base && o.files == nil {
		return nil
	}
	k := &Kept{Tree: files}
	var earlier []string
	if o.files != nil {
		earlier = []string{o.files.Commit}
	}
	k.Commit, o.data, err = m.SaveTree(ctx, root.ID+"-kept-0", w.BaseCommit, files, o.d.CreatedAt, earlier...)
	k.Bundle = bundleID("kept", root.ID, "-", k.Commit)
	root.Work.Kept = k
	return err
}

// fetchTree makes sure that the mirror has a tree, from a bundle in the store.
func (e *Engine) fetchTree(ctx context.Context, m *patch.Mirror, tree, blob, commit, base string) error {
	if m.Has(ctx, tree) && m.Has(ctx, base) {
		return nil
	}
	if blob == "" {
		if err := m.Fetch(ctx); err != nil {
			return err
		}
	} else {
		bundle, err := e.Store.Blob(ctx, blob)
		if err == nil {
			err = m.Import(ctx, bundle, commit)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	if !m.Has(ctx, tree) {
		return Errorf(CodeConflict, "The files of that turn are no longer kept. Fork from a later turn, or send a new task.")
	}
	return nil
}

// leftAt is what the budget of the first delegation had left at the turn: its limits
// without what the kept turns, and the children that they tell of, have used.
func (e *Engine) leftAt(ctx context.Context, o forkPoint) (*budget.Limits, error) {
	if o.d.Work.Budget == nil {
		return o.task.Budget, nil
	}
	account := budget.Account{Limits: o.d.Work.Budget.Limits}
	for _, t := range o.turns {
		account.Charge(amountOf(t.Usage))
		account.Used.Time += t.Took
		for _, id := range t.Children {
			c, err := e.Store.Delegation(ctx, id)
			if err != nil {
				return nil, fmt.Errorf("what %s has used: %w", id, err)
			}
			account.Charge(amountOf(c.Usage))
		}
	}
	left := account.Remaining()
	return &left, nil
}
