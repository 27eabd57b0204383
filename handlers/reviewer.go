package handlers

import (
	"context"
	"fmt"

	"gatehouse/approval"
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

var _ Reviewer = Trees{}

// Hunks returns the hunks of one changed file.
func (t Trees) Hunks(ctx context.Context, r approval.Revision, repository string, f patch.File, context int) ([]patch.Hunk, error) {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return nil, err
	}
	return m.Hunks(ctx, r.Base.Tree, r.Tree, f, context)
}

// Diff returns the whole change.
func (t Trees) Diff(ctx context.Context, r approval.Revision, repository string) ([]byte, error) {
	m, err := t.open(ctx, r, repository)
	if err != nil {
		return nil, err
	}
	return m.Diff(ctx, r.Base.Tree, r.Tree)
}

// open returns the mirror once it has both trees of the revision.
func (t Trees) open(ctx context.Context, r approval.Revision, name string) (*patch.Mirror, error) {
	repo, ok := t.Config().Repositories[name]
	if !ok {
		return nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "The repository %q is not configured any more, so this change cannot be shown. Add it back to gatehouse.yaml.", name)
	}
	m := t.Mirrors.Open(patch.Repository{Name: repo.Name, Source: repo.Source, Branch: repo.Branch, Deliver: repo.Deliver,
		Checks: repo.Checks, Protect: repo.Protect, Credential: repo.Credential})
	if m.Has(ctx, r.Base.Tree) && m.Has(ctx, r.Tree) {
		return m, nil
	}
	if !m.Has(ctx, r.Base.Commit) {
		if err := m.Fetch(ctx); err != nil {
			return nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "The repository %s could not be read, so this change cannot be shown yet: %w", name, err)
		}
	}
	bundle, err := t.Blob(ctx, r.Bundle)
	if err != nil {
		return nil, fmt.Errorf("the bundle of revision %d: %w", r.N, err)
	}
	return m, m.Import(ctx, bundle, r.Commit)
}
