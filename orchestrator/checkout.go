package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
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
	if err := e.layAttachments(r); err != nil {
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
	case w.pinned():
		return r.findPinned()
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

// findPinned brings in the commit that people said yes to. Where the source has dropped it
// and this node never had it, nothing else may run in its place.
func (r *run) findPinned() error {
	w := &r.d.Work
	if !r.mirror.Has(r.ctx, w.BaseCommit) {
		if err := r.mirror.Fetch(r.ctx); err != nil {
			return err
		}
	}
	if !r.mirror.Has(r.ctx, w.BaseCommit) {
		return agent.Fail(agent.CodeNoCheckout, "People said yes to this on %s at %.12s, and the repository does not have that commit any more. Retry the task to ask again.",
			placeName(w.Branch, w.Tag), w.BaseCommit)
	}
	return r.bring(r.ctx, w.BaseBundle, w.BaseSaved)
}

// fetched turns a problem of the source, which a person must mend, into the
// delegation's failure; what may heal stays an error and is tried again.
func (r *run) fetched(err error) error {
	if source, ok := errors.AsType[*patch.SourceError](err); ok && !source.Temporary() {
		return agent.Fail(agent.CodeNoCheckout, "%s", source.Message)
	}
	return refFailure(err)
}

// makeFolder makes the attempt's own folder, with scratch in it.
func (e *Engine) makeFolder(r *run) error {
	r.folder = filepath.Join(e.Data, "runs", fmt.Sprintf("%s-%d", r.id, r.attempt))
	if err := removeTree(r.folder); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(r.folder, "scratch"), 0o700)
}

// layAttachments puts the files that came with the task beside the checkout, where they are
// no part of any patch. Nobody may write them there, also where nothing confines the agent.
func (e *Engine) layAttachments(r *run) error {
	if len(r.task.Attachments) == 0 {
		return nil
	}
	dir := filepath.Join(r.folder, "attachments")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of attachments: %w", err)
	}
	for _, a := range r.task.Attachments {
		data, err := e.Store.Blob(r.ctx, AttachmentBlob(r.task.ID, a.SHA256))
		if errors.Is(err, ErrNotFound) {
			return agent.Fail(agent.CodeAttachment, "The content of the attachment %q is gone: retention removed it. Send a new task with the file.", a.Name)
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, a.Name), data, 0o400); err != nil {
			return fmt.Errorf("lay out an attachment: %w", err)
		}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("the folder of attachments: %w", err)
	}
	r.attached = real
	return os.Chmod(real, 0o500)
}

// attachments are the files of the task as a run finds them.
func (r *run) attachments() []agent.Attachment {
	all := slices.Clone(r.task.Attachments)
	for i := range all {
		if r.attached != "" {
			all[i].Path = filepath.Join(r.attached, all[i].Name)
		}
	}
	return all
}

// removeFolder removes what the attempt left on disk.
func (r *run) removeFolder() {
	if r.folder == "" {
		return
	}
	if err := removeTree(r.folder); err != nil {
		r.e.Log.Warn("a run's folder could not be removed", "folder", r.folder, "err", err)
	}
}

// removeTree removes a folder, also where somebody made what is in it unwritable.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error { //nolint:errcheck // what cannot be opened fails below
		if entry != nil && entry.IsDir() {
			os.Chmod(path, 0o700) //nolint:errcheck // the same
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// What a process before this one had started may still write for a moment after it was
// killed: git into a checkout, for one. So its folder is removed in several tries.
const (
	clearTries = 6
	clearPause = 50 * time.Millisecond // doubling
)

// clearRuns removes what attempts left on disk before this process started. What does not
// go is in nobody's way, because each attempt has a folder of its own; the next start
// tries again.
func (e *Engine) clearRuns(ctx context.Context) error {
	dir := filepath.Join(e.Data, "runs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of runs: %w", err)
	}
	pause := clearPause
	for try := 1; ; try++ {
		err := emptyFolder(dir)
		if err == nil {
			return nil
		}
		if try == clearTries {
			e.Log.Warn("what earlier runs left could not all be removed; the next start tries again", "folder", dir, "err", err)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// emptyFolder removes what is in a folder and leaves the folder, which may be a mount.
func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if gone := removeTree(filepath.Join(dir, entry.Name())); entry.Name() != "lost+found" { // that of a file system of its own is root's
			err = errors.Join(err, gone)
		}
	}
	return err
}

// refLook is how long a new task waits for the source to say whether it has a ref.
const refLook = 5 * time.Second

// checkRef refuses a ref that is no name of a branch or tag, and one that the task's
// repository does not have. Where the source cannot be reached the task is taken: its
// run fails with a sentence when there is no such ref after all, and no task is lost
// because the place where the code lives was away for a minute.
func (e *Engine) checkRef(ctx context.Context, s Submission, repository string) error {
	if err := badRef(s.Ref); err != nil || s.Ref == "" || repository == "" {
		return err
	}
	m, _, err := e.mirror(repository)
	if err != nil {
		return err
	}
	look, cancel := context.WithTimeout(ctx, refLook)
	defer cancel()
	found, near, err := m.Knows(look, s.Ref)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		e.Log.Warn("the ref of a task could not be looked up; the task is taken and its run will tell", "repository", repository, "ref", s.Ref, "err", err)
		return nil
	case found:
		return nil
	}
	if s.Key != "" { // a task that was made is answered, also when its branch is gone by now
		if _, err := e.Store.TaskByKey(ctx, s.RequesterID, s.Key); err == nil {
			return nil
		}
	}
	unknown := m.UnknownRef(s.Ref, near)
	return &Error{Code: CodeBadRef, Message: unknown.Message, Err: unknown}
}

// badRef refuses what is no name of a branch or a tag.
func badRef(ref string) error {
	err := patch.CheckRef(ref)
	if err == nil {
		return nil
	}
	return &Error{Code: CodeBadRef, Message: err.Error(), Err: err}
}

// Stand is what a delegation's files come from. Exactly one of Branch and Tag is set
// where there is a repository; on a tag nothing can land.
type Stand struct {
	Branch     string `json:"branch,omitempty"`     // where a patch would land
	Tag        string `json:"tag,omitempty"`        // read only
	BaseCommit string `json:"baseCommit,omitempty"` // what the checkout was made from
	BaseTree   string `json:"baseTree,omitempty"`   // the caller's snapshot, or the commit's tree
}

// standOn is a place of the source.
func standOn(s patch.Start) Stand {
	return Stand{Branch: s.Branch, Tag: s.Tag, BaseCommit: s.Commit, BaseTree: s.Tree}
}

// target is what a patch is held against and where it would land. Whatever is recorded
// or put before people asks here first, so that no request is without a target.
func (s Stand) target() (patch.Base, error) {
	switch {
	case s.Tag != "":
		return patch.Base{}, &patch.Refusal{Code: patch.CodeBadRef, Message: "This task works on the tag " + patch.Shown(s.Tag) +
			", which is read only, so its change has nowhere to land. Send the task with a branch."}
	case s.Branch == "" || s.BaseCommit == "" || s.BaseTree == "":
		return patch.Base{}, &patch.Refusal{Code: patch.CodeBadRef, Message: "This task names no branch that its change could land on: it was sent for a commit, as older versions took it. Send a new task with a branch."}
	}
	return patch.Base{Branch: s.Branch, Commit: s.BaseCommit, Tree: s.BaseTree}, nil
}

// refFailure makes what the mirror says of a ref the delegation's failure.
func refFailure(err error) error {
	if ref, ok := errors.AsType[*patch.RefError](err); ok {
		return agent.Fail(CodeBadRef, "%s", ref.Message)
	}
	return err
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
		if w.Checkpoint != nil {
			bundle, holder = w.Checkpoint.Bundle, w.Checkpoint.Commit
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
	k := &Checkpoint{Tree: files}
	var earlier []string
	if o.files != nil {
		earlier = []string{o.files.Commit}
	}
	k.Commit, o.data, err = m.SaveTree(ctx, root.ID+"-kept-0", w.BaseCommit, files, o.d.CreatedAt, earlier...)
	k.Bundle = bundleID("kept", root.ID, "-", k.Commit)
	root.Work.Checkpoint = k
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
