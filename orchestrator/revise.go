package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/orchestrator/patch"
)

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
	var names []string
	for _, e := range w.Made.Editors {
		names = append(names, e.Name)
	}
	return names
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
	var source *patch.SourceError
	if errors.As(err, &source) {
		err = Errorf(CodeUnavailable, "The repository %s could not be read: %w", d.Repository, err)
	}
	return d, m, err
}
