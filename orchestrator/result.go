package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

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
		if refusal, ok := errors.AsType[*patch.Refusal](err); ok && spec.AnalysisOnly {
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
	return !strings.ContainsFunc(s, func(c rune) bool { return c != ' ' && c != '\t' && c != '\n' && c != '\r' })
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
		if spec.AnalysisOnly && !d.Work.Acted {
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

// Artifacts are stored by content, once for each task: retention removes them with it.
const (
	// maxShownArtifact is how long a text may be that stands in the row as well, in bytes.
	maxShownArtifact = 4000
	// maxToldArtifact is how long a text may be that a workflow's templates can use.
	maxToldArtifact = MaxText
)

// content is what of an artifact is written into the store.
type content struct {
	id   string
	data []byte
}

// ArtifactBlob names the content of an artifact in the store.
func ArtifactBlob(taskID, sha string) string { return "artifact:" + taskID + ":" + sha }

// ArtifactURL is where callers get the content of an artifact, from the server's address on.
func ArtifactURL(delegationID, name string) string {
	return "/api/v1/delegations/" + delegationID + "/artifacts/" + url.PathEscape(name)
}

// gather reads the artifacts of a result while the checkout is there. The result that it
// returns names them by content; the contents are stored with it.
func (r *run) gather(ctx context.Context, res *agent.Result) (*agent.Result, error) {
	r.contents = nil
	if len(res.Artifacts) == 0 {
		return res, nil
	}
	if n := len(res.Artifacts); n > agent.MaxArtifacts {
		return nil, agent.Fail(agent.CodeArtifact, "There are %d artifacts; %d is the limit.", n, agent.MaxArtifacts)
	}
	told, sum := *res, 0
	told.Artifacts = nil
	names := map[string]bool{}
	for _, a := range res.Artifacts {
		data, err := r.contentOf(ctx, a)
		if err != nil {
			return nil, err
		}
		if sum += len(data); sum > agent.MaxArtifactSum {
			return nil, agent.Fail(agent.CodeArtifact, "The artifacts have more than %d bytes together, which is the limit. Make them smaller.", agent.MaxArtifactSum)
		}
		name := a.Name
		for n := 2; names[name]; n++ {
			name = fmt.Sprintf("%s (%d)", a.Name, n)
		}
		names[name] = true
		digest := sha256.Sum256(data)
		stored := agent.Artifact{Name: name, MediaType: a.TypeOf(data), SHA256: hex.EncodeToString(digest[:]), Size: int64(len(data)), URL: ArtifactURL(r.id, name)}
		if len(data) <= maxShownArtifact && isText(data) {
			stored.Text = string(data)
		}
		told.Artifacts = append(told.Artifacts, stored)
		r.contents = append(r.contents, content{ArtifactBlob(r.task.ID, stored.SHA256), data})
	}
	return &told, nil
}

// contentOf is the content of one artifact. What an agent passes on of one that worked for it
// has no text and no path: the task has its content.
func (r *run) contentOf(ctx context.Context, a agent.Artifact) ([]byte, error) {
	if a.SHA256 == "" || a.Text != "" {
		return a.Read(r.dir)
	}
	data, err := r.e.Store.Blob(ctx, ArtifactBlob(r.task.ID, a.SHA256))
	if errors.Is(err, ErrNotFound) {
		return nil, agent.Fail(agent.CodeArtifact, "The content of the artifact %q is not stored any more.", a.Name)
	}
	return data, err
}

// putContents stores the contents that the run has gathered.
func (r *run) putContents(ctx context.Context, tx Tx) error {
	for _, c := range r.contents {
		if err := tx.PutBlob(ctx, c.id, "artifact", c.data); err != nil {
			return err
		}
	}
	return nil
}

func isText(data []byte) bool { return utf8.Valid(data) && !strings.ContainsRune(string(data), 0) }

// tellTexts gives a child's text artifacts to a workflow, whose templates use them.
func (e *Engine) tellTexts(ctx context.Context, taskID string, c *agent.Child) error {
	if c.Result == nil || len(c.Result.Artifacts) == 0 {
		return nil
	}
	told := *c.Result
	told.Artifacts = append([]agent.Artifact(nil), told.Artifacts...)
	for i, a := range told.Artifacts {
		if a.SHA256 == "" || a.Text != "" || a.Size > maxToldArtifact {
			continue
		}
		data, err := e.Store.Blob(ctx, ArtifactBlob(taskID, a.SHA256))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if isText(data) {
			told.Artifacts[i].Text = string(data)
		}
	}
	c.Result = &told
	return nil
}

// Artifact is the content of an artifact of d. Those of older versions are their text.
func (e *Engine) Artifact(ctx context.Context, d Delegation, a agent.Artifact) ([]byte, error) {
	if a.SHA256 == "" {
		return []byte(a.Text), nil
	}
	data, err := e.Store.Blob(ctx, ArtifactBlob(d.TaskID, a.SHA256))
	if errors.Is(err, ErrNotFound) {
		return nil, Errorf(CodeNotFound, "The content of %q is gone: retention removed it.", a.Name)
	}
	return data, err
}

// NamedArtifact finds an artifact of d by its name.
func (d *Delegation) NamedArtifact(name string) (agent.Artifact, error) {
	if d.Result != nil {
		for _, a := range d.Result.Artifacts {
			if a.Name == name {
				return a, nil
			}
		}
	}
	return agent.Artifact{}, Errorf(CodeNotFound, "%s has no artifact %.60q. Its page lists what it has.", d.To, name)
}
