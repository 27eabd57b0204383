package patch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/textcut"
)

// CarryOver asks whether a patch (oldBase → tree) may land on newBase as it was
// approved: only when no path that it changes, and no folder above or below
// one, differs between the two bases, and none that it adds got an alias there. Then the result is the new base with
// exactly the changed files replaced. Nothing is merged: a line approved in one
// place never moves to another. All three are trees.
func (r *Mirror) CarryOver(ctx context.Context, oldBase, tree, newBase string) (Carried, error) {
	if oldBase == newBase {
		return Carried{OK: true, Tree: tree}, nil
	}
	changes, err := r.Changes(ctx, oldBase, tree)
	if err != nil {
		return Carried{}, err
	}
	theirs, err := r.Changes(ctx, oldBase, newBase)
	if err != nil {
		return Carried{}, err
	}
	ours := map[string]bool{}
	folders := map[string]bool{}
	for _, c := range changes {
		ours[c.Path] = true
		for p := parent(c.Path); p != ""; p = parent(p) {
			folders[p] = true
		}
	}
	var moved []string
	for _, c := range theirs {
		hit := ours[c.Path] || folders[c.Path]
		for p := parent(c.Path); p != "" && !hit; p = parent(p) {
			hit = ours[p]
		}
		if hit {
			moved = append(moved, c.Path)
		}
	}
	moved = append(moved, newAliases(changes, theirs)...)
	if len(moved) > 0 {
		slices.Sort(moved)
		return Carried{Moved: slices.Compact(moved)}, nil
	}
	result, err := r.edit(ctx, newBase, changes)
	if err != nil {
		return Carried{}, fmt.Errorf("carry the change over: %w", err)
	}
	return Carried{OK: true, Tree: result}, nil
}

// parent is the folder of a path, "" at the top.
func parent(p string) string { return p[:max(strings.LastIndexByte(p, '/'), 0)] }

// Merged merges a patch (baseTree → tree) with what the base became, in three
// ways. It serves only to prepare a new revision, which people are asked about
// again. Where it does not come out clean, the tree holds conflict markers.
func (r *Mirror) Merged(ctx context.Context, baseTree, tree, newBaseTree string) (result string, clean bool, err error) {
	result, conflicts, err := r.merge(ctx, baseTree, newBaseTree, tree)
	return result, err == nil && len(conflicts) == 0, err
}

// RevertTree is the tree that undoes on onto what a merge brought. Where later
// changes touch the same lines it is a *Conflict.
func (r *Mirror) RevertTree(ctx context.Context, merge string, onto Base) (string, error) {
	if err := checkIDs(merge, onto.Tree); err != nil {
		return "", err
	}
	if err := r.ensure(ctx); err != nil {
		return "", err
	}
	out, err := r.text(ctx, "rev-parse", merge+"^{tree}", merge+"^1^{tree}")
	ids := strings.Fields(out)
	if err != nil || len(ids) != 2 {
		return "", fmt.Errorf("revert %s: %w", merge, ErrMissing)
	}
	tree, conflicts, err := r.merge(ctx, ids[0], onto.Tree, ids[1])
	if err != nil {
		return "", fmt.Errorf("revert %s: %w", merge, err)
	}
	if len(conflicts) > 0 {
		return "", &Conflict{What: "revert", Files: conflicts}
	}
	return tree, nil
}

// merge runs git's three-way merge of trees. merge-tree wants commits, so the
// three trees get commits of their own, with fixed dates and no ref.
func (r *Mirror) merge(ctx context.Context, base, ours, theirs string) (tree string, conflicts []string, err error) {
	if err := r.ensure(ctx); err != nil {
		return "", nil, err
	}
	at := time.Unix(0, 0)
	b, err := r.commit(ctx, commitSpec{tree: base, message: "base\n", at: at})
	if err != nil {
		return "", nil, err
	}
	o, err := r.commit(ctx, commitSpec{tree: ours, parents: []string{b}, message: "ours\n", at: at})
	if err != nil {
		return "", nil, err
	}
	t, err := r.commit(ctx, commitSpec{tree: theirs, parents: []string{b}, message: "theirs\n", at: at})
	if err != nil {
		return "", nil, err
	}
	out, err := r.git(ctx, command{args: []string{"merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", o, t}})
	if err != nil && exitCode(err) != 1 {
		return "", nil, r.missing(err)
	}
	fields := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if !isID(fields[0]) {
		return "", nil, fmt.Errorf("git merge-tree printed %q", textcut.Brief(string(out), 80))
	}
	if exitCode(err) != 1 {
		return fields[0], nil, nil
	}
	conflicts = fields[1:]
	slices.Sort(conflicts)
	if conflicts = slices.Compact(conflicts); len(conflicts) == 0 {
		conflicts = []string{"(unnamed)"}
	}
	return fields[0], conflicts, nil
}
