package change

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
)

// Trees is the Reviewer that reads the mirrors of this node. A revision that was
// made on another node is brought in from its bundle first.
type Trees struct {
	Mirrors *patch.Mirrors
	Config  func() *orchestrator.Config
	Blob    func(ctx context.Context, id string) ([]byte, error)
}

var _ handlers.Reviewer = Trees{}

// EachHunks yields the hunks of the wanted files.
func (t Trees) EachHunks(ctx context.Context, r approval.Revision, repository string, want func(i int) bool, context int, yield func(i int, hunks []patch.Hunk) error) error {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return err
	}
	return m.EachHunks(ctx, r.Base.Tree, r.Tree, r.Files, want, context, yield)
}

// EachWhole yields all lines of the wanted files as they are in the result.
func (t Trees) EachWhole(ctx context.Context, r approval.Revision, repository string, want func(i int) bool, yield func(i int, hunks []patch.Hunk) error) error {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return err
	}
	return m.EachWhole(ctx, r.Files, want, yield)
}

// File returns a file of the result.
func (t Trees) File(ctx context.Context, r approval.Revision, repository, path string, max int64) ([]byte, bool, error) {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return nil, false, err
	}
	return m.File(ctx, r.Tree, path, max)
}

// Files returns files of the result.
func (t Trees) Files(ctx context.Context, r approval.Revision, repository string, paths []string, max int64) (map[string][]byte, error) {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return nil, err
	}
	return m.Files(ctx, r.Tree, paths, max)
}

// maxCounted is the largest file whose lines are counted, in bytes.
const maxCounted = 4 << 20

// LineCounts counts the lines of the wanted files of the result.
func (t Trees) LineCounts(ctx context.Context, r approval.Revision, repository string, want func(i int) bool) (map[int]int, error) {
	var wanted []int
	var ids []string
	for i, f := range r.Files {
		if want(i) && f.NewBlob != "" && f.OldBlob != "" && !f.Binary && f.NewSize <= maxCounted {
			wanted, ids = append(wanted, i), append(ids, f.NewBlob)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return nil, err
	}
	counts, err := m.LineCounts(ctx, ids, maxCounted)
	if err != nil {
		return nil, err
	}
	found := make(map[int]int, len(ids))
	for k, i := range wanted {
		found[i] = counts[k]
	}
	return found, nil
}

// Content returns the content of an object.
func (t Trees) Content(ctx context.Context, r approval.Revision, repository, id string, max int64) ([]byte, error) {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return nil, err
	}
	return m.Blob(ctx, id, max)
}

// Diff returns the whole change.
func (t Trees) Diff(ctx context.Context, r approval.Revision, repository string) ([]byte, error) {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return nil, err
	}
	return m.Diff(ctx, r.Base.Tree, r.Tree)
}

// mirror is that of a repository.
func (t Trees) mirror(name string) (*patch.Mirror, error) {
	repo, ok := t.Config().Repositories[name]
	if !ok {
		return nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "The repository %q is not configured any more, so this change cannot be shown. Add it back to gatehouse.yaml.", name)
	}
	return t.Mirrors.Open(repo), nil
}

// Open returns the mirror once it has both trees of the revision.
func (t Trees) open(ctx context.Context, r approval.Revision, name string) (*patch.Mirror, error) {
	m, err := t.mirror(name)
	if err != nil {
		return nil, err
	}
	if m.Has(ctx, r.Base.Tree) && m.Has(ctx, r.Tree) {
		return m, nil
	}
	if !m.Has(ctx, r.Base.Commit) {
		if err := m.Fetch(ctx); err != nil {
			return nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "The repository %s could not be read, so this change cannot be shown yet: %w", name, err)
		}
	}
	bundle, err := t.Blob(ctx, r.Bundle)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "Retention removed the files of this change, so it cannot be shown any more. Its digest, its file names and its decisions are kept.")
	}
	if err != nil {
		return nil, fmt.Errorf("the bundle of revision %d: %w", r.N, err)
	}
	return m, m.Import(ctx, bundle, r.Commit)
}

// Between returns what changed from one revision's result to another's. EachHunks and
// Diff of to, with the other's tree as its base, show it.
func (t Trees) Between(ctx context.Context, from, to approval.Revision, repository string) (*patch.Review, error) {
	if _, err := t.open(ctx, from, repository); err != nil {
		return nil, err
	}
	m, err := t.open(ctx, to, repository)
	if err != nil {
		return nil, err
	}
	return m.Review(ctx, from.Tree, to.Tree)
}

// lookLimit is how long a page waits for a look at the repository itself; after it
// the page shows what was known. A fetch on this machine takes 20 ms; on a machine so busy
// that it takes a second, a page that offers a yes to what is overtaken is worse than a late one.
const lookLimit = 3 * time.Second

// maxCommits is how many commits of a branch that moved are counted.
const maxCommits = 1000

var _ approval.Branches = Trees{}

// Heads is where branches of a repository are. A repository on this machine is looked at; of
// one elsewhere it is what the last fetch brought, so that no page waits for a network.
func (t Trees) Heads(ctx context.Context, repository string, branches []string) (map[string]string, error) {
	m, err := t.mirror(repository)
	if err != nil {
		return nil, err
	}
	if err := look(ctx, m); err != nil {
		return nil, err
	}
	heads := map[string]string{}
	var failed error
	for _, branch := range branches {
		head, err := m.Branch(ctx, branch)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		heads[branch] = head.Commit
	}
	return heads, failed
}

// look brings the mirror of a repository on this machine up to it, if that takes no longer
// than a page may wait.
func look(ctx context.Context, m *patch.Mirror) error {
	if !filepath.IsAbs(m.Repository().Source) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if err := m.Fetch(limited); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// Moved compares a change with its branch, which is looked at as Heads does.
func (t Trees) Moved(ctx context.Context, r approval.Revision, repository string) (handlers.Movement, error) {
	m, err := t.mirror(repository)
	if err != nil {
		return handlers.Movement{}, err
	}
	if err := look(ctx, m); err != nil {
		return handlers.Movement{}, err
	}
	return t.Since(ctx, r, repository)
}

// Since is Moved without a look.
func (t Trees) Since(ctx context.Context, r approval.Revision, repository string) (handlers.Movement, error) {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return handlers.Movement{}, err
	}
	head, err := m.Branch(ctx, r.Base.Branch)
	if err != nil || head.Commit == r.Base.Commit {
		return handlers.Movement{}, err
	}
	moved := handlers.Movement{Head: head.Commit}
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if ahead, lost, err := m.Ahead(limited, r.Base.Commit, head.Commit, maxCommits+1); err == nil { // else it is not said
		moved.Commits, moved.More, moved.Rewritten = min(ahead, maxCommits), ahead+lost > maxCommits, lost > 0
	}
	moved.Fits, err = m.CarryOver(ctx, r.Base.Tree, r.Tree, head.Tree)
	return moved, err
}
