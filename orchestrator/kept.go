package orchestrator

import (
	"context"
	"fmt"
	"slices"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
)

// Kept is a checkout between two runs of one conversation: what belongs to its last
// stored turn. Files that the repository ignores are not in it.
//
// Each kept commit has the one before as a parent, so the newest bundle holds the files
// of every turn; older bundles are dropped. The newest stays with a delegation that
// ended, because a fork goes on from there.
type Kept struct {
	Tree   string   `json:"tree"`
	Commit string   `json:"commit"`           // carries Tree in the bundle
	Bundle string   `json:"bundle"`           // blob
	Merged []string `json:"merged,omitempty"` // children whose changes are in Tree and whom no turn has carried
}

// keepFiles saves the checkout as it is now. It returns nil where nothing may have
// changed since it was kept. The caller holds r.filing.
func (r *run) keepFiles(ctx context.Context, changed bool) (*Kept, []byte, error) {
	if !r.keeps || !changed && len(r.merged) == 0 || r.dir == "" || r.mirror == nil {
		return nil, nil, nil
	}
	return r.saveFiles(ctx)
}

// saveFiles is keepFiles for a run that has a checkout, whatever its kind.
func (r *run) saveFiles(ctx context.Context) (*Kept, []byte, error) {
	w := &r.d.Work
	s, err := r.mirror.Snapshot(ctx, r.dir, w.BaseTree)
	if err != nil {
		return nil, nil, refusedFiles(err)
	}
	k := &Kept{Tree: s.Tree, Merged: slices.Clone(r.merged)}
	var earlier []string
	if w.Kept != nil {
		k.Merged = append(slices.Clone(w.Kept.Merged), k.Merged...)
		if w.Kept.Tree == s.Tree {
			k.Commit, k.Bundle = w.Kept.Commit, w.Kept.Bundle
			return k, nil, nil
		}
		earlier = []string{w.Kept.Commit}
	} else if s.Tree == w.BaseTree && len(k.Merged) == 0 {
		return nil, nil, nil
	}
	var bundle []byte
	k.Commit, bundle, err = r.mirror.SaveTree(ctx, fmt.Sprintf("%s-kept-%d", r.id, w.Runs), w.BaseCommit, s.Tree, r.d.CreatedAt, earlier...)
	k.Bundle = bundleID("kept", r.id, "-", k.Commit)
	return k, bundle, err
}

// file writes into d what its run keeps: the base of the checkout, and the checkout
// itself where k is not nil.
func (r *run) file(ctx context.Context, tx Tx, d *Delegation, k *Kept, bundle []byte) error {
	if !r.keeps {
		return nil
	}
	return r.storeFiles(ctx, tx, d, k, bundle)
}

// storeFiles is file, whatever the run's kind.
func (r *run) storeFiles(ctx context.Context, tx Tx, d *Delegation, k *Kept, bundle []byte) error {
	w := r.d.Work
	d.Work.Stand = w.Stand
	if k == nil {
		return nil
	}
	r.sign(d)
	old := d.Work.Kept
	d.Work.Kept = k
	if old != nil && old.Bundle == k.Bundle {
		return nil
	}
	if err := tx.PutBlob(ctx, k.Bundle, "bundle", bundle); err != nil {
		return err
	}
	before := Session{Kept: old, From: d.Work.From}
	return before.dropKept(ctx, tx)
}

// filed notes in the run what the row has now. The caller holds r.filing.
func (r *run) filed(k *Kept) {
	if k != nil {
		r.d.Work.Kept, r.merged = k, nil
	}
}

// without is k without the children that a turn has carried: they are never brought in
// again.
func (k *Kept) without(children []string) *Kept {
	if k == nil || len(children) == 0 {
		return k
	}
	left := *k
	left.Merged = slices.DeleteFunc(slices.Clone(k.Merged), func(id string) bool { return slices.Contains(children, id) })
	return &left
}

// takeIn is a child as its caller is given it, with its changes brought into the
// caller's checkout, once.
func (r *run) takeIn(ctx context.Context, d *Delegation) (agent.Child, error) {
	r.filing.Lock()
	defer r.filing.Unlock()
	if c, done := r.back[d.ID]; done {
		return c, nil
	}
	c := childOf(d)
	if !c.Ended {
		return c, nil
	}
	if r.brings(d) {
		if err := r.takeBack(ctx, d, &c); err != nil {
			return agent.Child{}, err
		}
	}
	r.back[d.ID] = c
	return c, nil
}

// brings reports whether a child has changes that belong into the checkout and are not
// there. A command brings them in when it asks for the child.
func (r *run) brings(d *Delegation) bool {
	if r.dir == "" || d.State != Completed || !d.Work.Shares || d.Work.Tree == "" || d.Work.Tree == d.Work.BaseTree {
		return false
	}
	return r.d.Work.Kept == nil || !slices.Contains(r.d.Work.Kept.Merged, d.ID)
}

// snapshotOf is what a child starts from whose caller's checkout is kept as k.
func (r *run) snapshotOf(ctx context.Context, k *Kept, bundle []byte) (*base, error) {
	if r.dir == "" || r.mirror == nil || !r.keeps {
		return nil, nil
	}
	return r.baseOf(ctx, k, bundle)
}

// baseOf is snapshotOf for a run that has a checkout, whatever its kind.
func (r *run) baseOf(ctx context.Context, k *Kept, bundle []byte) (*base, error) {
	w := r.d.Work
	if k == nil {
		k = w.Kept
	}
	b := &base{commit: w.BaseCommit, branch: w.Branch, tag: w.Tag, tree: w.BaseTree, lineage: r.lineage()}
	var err error
	switch {
	case k == nil:
		b.saved, b.bundle, err = r.mirror.SaveTree(ctx, r.id+"-base", b.commit, b.tree, r.d.CreatedAt)
	case bundle == nil:
		b.tree, b.saved = k.Tree, k.Commit
		b.bundle, err = r.e.Store.Blob(ctx, k.Bundle)
	default:
		b.tree, b.saved, b.bundle = k.Tree, k.Commit, bundle
	}
	return b, err
}

// refusedFiles makes what an agent may not leave in its checkout its own failure.
func refusedFiles(err error) error {
	if refusal := patch.RefusalOf(err); refusal != nil {
		return agent.Fail(refusal.Code, "%s", refusal.Message)
	}
	return err
}
