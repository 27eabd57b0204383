package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// mirror is the node's mirror of a configured repository.
func (e *Engine) mirror(name string) (*patch.Mirror, Repository, error) {
	repo, err := e.Config().repository(name)
	if err != nil {
		return nil, repo, agent.Fail(agent.CodeNoCheckout, "There is no repository %q in the configuration any more.", name)
	}
	return e.Mirrors.Open(repo), repo, nil
}

// prepare makes the folders of an attempt and, for an agent that works on files, a
// fresh checkout: of the caller's snapshot where it has one, else of the branch.
func (e *Engine) prepare(r *run, spec agent.Spec) error {
	if !e.traits(spec).Files {
		return nil
	}
	if err := e.makeFolder(r); err != nil {
		return err
	}
	if r.d.Repository == "" {
		return nil
	}
	var err error
	if r.mirror, _, err = e.mirror(r.d.Repository); err != nil {
		return err
	}
	if err := r.fetched(r.findBase()); err != nil {
		return err
	}
	if err := r.steady(spec); err != nil {
		return err
	}
	w := &r.d.Work
	if s := w.start(); s != nil {
		if err := r.fetched(r.bring(r.ctx, s.Bundle, s.Commit)); err != nil {
			return err
		}
	}
	r.dir = filepath.Join(r.folder, "checkout")
	return r.fetched(r.mirror.Checkout(r.ctx, w.BaseCommit, w.startTree(), r.dir))
}

// findBase finds what the checkout is made on: the caller's snapshot, what a conversation
// or the first revision began on, or the branch as it is now.
func (r *run) findBase() error {
	w := &r.d.Work
	switch {
	case w.Shares:
		return r.bring(r.ctx, w.BaseBundle, w.BaseSaved)
	case (r.keeps || w.From != nil) && w.BaseCommit != "":
		if r.mirror.Has(r.ctx, w.BaseCommit) {
			return nil
		}
		return r.mirror.Fetch(r.ctx)
	}
	if err := r.mirror.Fetch(r.ctx); err != nil {
		return err
	}
	s, err := r.mirror.Start(r.ctx, r.task.Ref)
	if err == nil {
		w.Stand = standOn(s)
	}
	return err
}

// fetched turns a problem of the source, which a person must mend, into the
// delegation's failure; what may heal stays an error and is tried again.
func (r *run) fetched(err error) error {
	var source *patch.SourceError
	if errors.As(err, &source) && !source.Temporary() {
		return agent.Fail(agent.CodeNoCheckout, "%s", source.Message)
	}
	return refFailure(err)
}

// makeFolder makes the attempt's own folder, with scratch in it.
func (e *Engine) makeFolder(r *run) error {
	r.folder = filepath.Join(e.Data, "runs", fmt.Sprintf("%s-%d", r.id, r.attempt))
	if err := os.RemoveAll(r.folder); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(r.folder, "scratch"), 0o700)
}

// removeFolder removes what the attempt left on disk. Folders that an agent made
// unwritable are opened first.
func (r *run) removeFolder() {
	if r.folder == "" {
		return
	}
	if os.RemoveAll(r.folder) == nil {
		return
	}
	filepath.WalkDir(r.folder, func(path string, entry os.DirEntry, err error) error { //nolint:errcheck // what cannot be opened fails below
		if entry != nil && entry.IsDir() {
			os.Chmod(path, 0o700) //nolint:errcheck // the same
		}
		return nil
	})
	if err := os.RemoveAll(r.folder); err != nil {
		r.e.Log.Warn("a run's folder could not be removed", "folder", r.folder, "err", err)
	}
}

// finish takes the answer of an agent and what it changed.
func (e *Engine) finish(r *run, spec agent.Spec, res *agent.Result) error {
	if res == nil {
		res = &agent.Result{}
	}
	if err := r.reclaim(); err != nil {
		return err
	}
	res, err := r.gather(r.ctx, res)
	if err != nil {
		return err
	}
	if err := spec.Fits(res.Data); err != nil {
		return agent.Fail(agent.CodeBadOutput, "%s answered what its output schema does not allow: %v. Correct the agent, or its `output` in gatehouse.yaml.", spec.Name, err)
	}
	tree, err := r.resultTree(res)
	if err != nil {
		var refusal *patch.Refusal
		if errors.As(err, &refusal) && spec.AnalysisOnly {
			return e.answer(r, spec, res, refusal)
		}
		return err
	}
	if tree == r.d.Work.BaseTree || tree == "" {
		return e.answer(r, spec, res, nil)
	}
	if spec.AnalysisOnly {
		return e.answer(r, spec, res, r.discarded(tree))
	}
	if _, err := r.d.Work.target(); err != nil {
		return err
	}
	_, repo, err := e.mirror(r.d.Repository)
	if err != nil {
		return err
	}
	if err := r.mirror.Validate(r.ctx, r.d.Work.BaseTree, tree, patch.Rules{Writes: spec.Writes, Protect: repo.Protect}); err != nil {
		return err
	}
	if r.d.Work.Shares {
		return e.handUp(r, res, tree)
	}
	return e.offer(r, res, tree)
}

// reclaim refuses what the agent still asks for from now on. Where it ended while it
// waited, its children end with it first, so that the slot that it takes back is free.
func (r *run) reclaim() error {
	r.mu.Lock()
	r.finished = true
	had := r.slot
	r.mu.Unlock()
	if had {
		return nil
	}
	if err := r.e.settled(r, func(context.Context, Tx, *Delegation) error { return nil }); err != nil {
		return err
	}
	if err := r.e.slots.resume(r.ctx); err != nil {
		return err
	}
	if !r.gainSlot() {
		r.e.slots.give()
	}
	return nil
}

// settled runs fn on r's row after its agent ended. Where children of it were open, or
// its wake-up had not been taken, they end with it and the row is running again first.
func (e *Engine) settled(r *run, fn func(ctx context.Context, tx Tx, d *Delegation) error) error {
	return e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if d.State == Waiting || d.State == Queued || d.OpenSpawned > 0 {
			if err := endChildren(ctx, tx, d, d.To, ""); err != nil {
				return err
			}
			d.OpenChildren, d.OpenSpawned = 0, 0
		}
		if d.State == Waiting || d.State == Queued {
			if err := goOn(ctx, tx, d); err != nil {
				return err
			}
		}
		return fn(ctx, tx, d)
	})
}

// resultTree is the tree that the agent made: from its patch text, or of its
// checkout. "" when it had none.
func (r *run) resultTree(res *agent.Result) (string, error) {
	if !blank(res.Patch) {
		if r.mirror == nil {
			return "", &patch.Refusal{Code: patch.CodePathOutside, Message: "The answer carries a patch, but the task has no repository to apply it to. Send the task with a repository."}
		}
		return r.mirror.ApplyText(r.ctx, r.d.Work.startTree(), []byte(res.Patch))
	}
	if r.dir == "" {
		return "", nil
	}
	s, err := r.mirror.Snapshot(r.ctx, r.dir, r.d.Work.BaseTree)
	return s.Tree, err
}

func blank(s string) bool {
	for _, c := range s {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// discarded says what an analysis-only agent changed.
func (r *run) discarded(tree string) *patch.Refusal {
	f := &patch.Refusal{Code: patch.CodeAnalysisOnly}
	changes, err := r.mirror.Changes(r.ctx, r.d.Work.BaseTree, tree)
	for _, c := range changes[:min(len(changes), 1000)] {
		f.Files = append(f.Files, c.Path)
	}
	if len(f.Files) > 0 {
		f.Path = f.Files[0]
	}
	where := fmt.Sprintf(" to %d files", len(changes))
	switch {
	case err != nil:
		where = ""
	case len(changes) == 1:
		where = " to 1 file"
	}
	f.Message = fmt.Sprintf("%s only analyses: its changes%s were discarded, its answer stands.", r.d.To, where)
	if names := r.changedBelow(); len(names) > 0 {
		f.Message += fmt.Sprintf(" What %s changed for it went with them.", strings.Join(names, ", "))
	}
	return f
}

// changedBelow names the agents whose changes came into the checkout.
func (r *run) changedBelow() []string {
	children, err := r.e.Store.Children(r.ctx, r.id, r.d.Work.Runs)
	if err != nil {
		return nil // they are named as a courtesy
	}
	var names []string
	for i := range children {
		if d := &children[i]; d.State == Completed && d.Work.Shares && d.Work.Tree != "" && d.Work.Tree != d.Work.BaseTree {
			names = union(names, d.To)
		}
	}
	return names
}

// carry copies what the attempt knows into the row.
func (r *run) carry(ctx context.Context, tx Tx, d *Delegation, res *agent.Result) error {
	w := r.d.Work
	d.Work.Stand, d.Work.Sandbox = w.Stand, w.Sandbox
	r.sign(d)
	r.worked(d)
	d.Result = res
	return r.putContents(ctx, tx)
}

// answer ends a delegation whose answer stands and of which nothing lands.
func (e *Engine) answer(r *run, spec agent.Spec, res *agent.Result, refusal *patch.Refusal) error {
	err := e.settled(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if err := r.carry(ctx, tx, d, res); err != nil {
			return err
		}
		if refusal != nil {
			d.Work.Discarded = refusal.Message
			if err := tx.Append(ctx, rejectedEvent(d, refusal)); err != nil {
				return err
			}
		}
		if spec.AnalysisOnly {
			err := tx.Append(ctx, event.Of(d.ID, RuleActor+"analysis-only", event.DecidedData{Verdict: event.Verdict{Verdict: "approve"},
				Rule: "analysis-only", Text: "Nothing changes: an analysis passes by itself."}))
			if err != nil {
				return err
			}
		}
		return Succeed(ctx, tx, d)
	})
	if err == nil {
		e.Trace("answered")
	}
	return err
}

// rejectedEvent says why a patch was not taken.
func rejectedEvent(d *Delegation, f *patch.Refusal) event.Event {
	files := f.Files
	if files == nil {
		files = []string{}
	}
	return event.Of(d.ID, d.To, event.PatchRejectedData{Code: f.Code, Path: f.Path, Message: f.Message, Files: files})
}

// refused ends a delegation whose patch is not taken.
func (e *Engine) refused(r *run, f *patch.Refusal) {
	err := e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if err := tx.Append(ctx, rejectedEvent(d, f)); err != nil {
			return err
		}
		return Fail(ctx, tx, d, &agent.Failure{Code: f.Code, Message: f.Message})
	})
	if err != nil && !errors.Is(err, ErrLost) {
		e.Log.Error("a refused patch could not be stored; the lease will run out", "delegation", r.id, "err", err)
	}
}

// handUp ends a child that worked on its caller's snapshot: its tree goes back into
// the caller's checkout, and the gate is asked once, for the caller's final tree.
func (e *Engine) handUp(r *run, res *agent.Result, tree string) error {
	saved, bundle, err := r.mirror.SaveTree(r.ctx, r.id, r.d.Work.BaseCommit, tree, r.d.CreatedAt)
	if err != nil {
		return err
	}
	return e.settled(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if err := r.carry(ctx, tx, d, res); err != nil {
			return err
		}
		d.Work.Tree, d.Work.TreeCommit, d.Work.TreeBundle = tree, saved, bundleID("tree", d.ID, r.attempt)
		if err := tx.PutBlob(ctx, d.Work.TreeBundle, "bundle", bundle); err != nil {
			return err
		}
		if err := tx.Append(ctx, validatedEvent(d, d.Work.BaseTree, tree)); err != nil {
			return err
		}
		return Succeed(ctx, tx, d)
	})
}

// bundleID names a bundle in the store.
func bundleID(parts ...any) string { return fmt.Sprint(append([]any{"bundle:"}, parts...)...) }

func validatedEvent(d *Delegation, from, to string) event.Event {
	return event.Of(d.ID, d.To, event.PatchValidatedData{BaseTree: from, Tree: to, Repository: d.Repository})
}

// offer records a tree that is to be put before people and goes on to its checks.
func (e *Engine) offer(r *run, res *agent.Result, tree string) error {
	rev, digest, err := e.record(r, tree)
	if err != nil {
		return err
	}
	declined, err := r.stillDeclined(r.ctx, tree)
	if err != nil {
		return err
	}
	err = e.settled(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if err := r.carry(ctx, tx, d, res); err != nil {
			return err
		}
		d.Work.Declined = declined
		return beginChecking(ctx, tx, d, tree, rev, d.To)
	})
	if err != nil {
		return err
	}
	e.Trace("tree stored")
	return e.checkRevision(r, digest)
}

// keep stores a recorded revision in the row.
func keep(ctx context.Context, tx Tx, d *Delegation, tree string, rev patch.Revision, actor string) error {
	d.Work.Tree, d.Work.TreeCommit, d.Work.AgentBranch = tree, rev.Commit, rev.Branch
	d.Work.TreeBundle, d.Losses = bundleID("rev", d.ID, rev.Commit), 0
	if err := tx.PutBlob(ctx, d.Work.TreeBundle, "bundle", rev.Bundle); err != nil {
		return err
	}
	e := validatedEvent(d, d.Work.BaseTree, tree)
	e.Actor = actor
	return tx.Append(ctx, e)
}

// record commits a tree on the agent's branch.
func (e *Engine) record(r *run, tree string) (patch.Revision, string, error) {
	_, repo, err := e.mirror(r.d.Repository)
	if err != nil {
		return patch.Revision{}, "", err
	}
	w := r.d.Work
	base, err := w.target()
	if err != nil {
		return patch.Revision{}, "", err
	}
	digest := patch.Digest(repo.Name, base.Branch, base.Commit, tree, deliver(repo))
	rev, err := r.mirror.Record(r.ctx, recordSpec(r.task, r.d, base.Commit, tree, digest, w.editorNames()))
	return rev, digest, err
}

func deliver(repo Repository) string {
	if repo.Deliver == "" {
		return patch.DeliverMerge
	}
	return repo.Deliver
}
