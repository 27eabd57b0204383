package patch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
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

// Overtaken says that a branch changed under a revision, so that a yes to it lands nothing.
type Overtaken struct {
	Branch string   `json:"branch"`
	Head   string   `json:"head"`  // where the branch was when that was found
	Files  []string `json:"files"` // of the change that the branch changed, too
	// Why is what happened, to stand within a sentence: "main changed core/a.go meanwhile".
	Why string `json:"why"`
}

// Overtaken is what m means for the revision that was approved.
func (m *Moved) Overtaken() Overtaken {
	o := Overtaken{Branch: m.Branch, Head: m.To, Files: append([]string{}, m.Files...)}
	branch := cmp.Or(m.Branch, "its branch")
	switch {
	case m.Why == MovedRewound:
		o.Why = branch + " was rewound or rewritten" + meanwhile
	case m.Why != "":
		o.Why = Clause(m.Error())
	case len(m.Files) > 0:
		o.Why = branch + " changed " + someFiles(m.Files) + meanwhile
	default:
		o.Why = branch + " moved" + meanwhile
	}
	return o
}

// meanwhile ends each Why but those that quote an error.
const meanwhile = " meanwhile"

// Briefly is Why where there is little room.
func (o Overtaken) Briefly() string { return strings.TrimSuffix(o.Why, meanwhile) }

// Clause is the first sentence of text, to stand within another.
func Clause(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), ". ")
	return strings.TrimRight(first, ".")
}

// someFiles names the first two; a long path is named by its end.
func someFiles(files []string) string {
	const most, long = 2, 40
	var names []string
	for _, f := range files[:min(len(files), most)] {
		if len(f) > long {
			f = "…/" + path.Base(f)
		}
		if len(f) > 2*long {
			f = f[:2*long] + "…"
		}
		if q := fmt.Sprintf("%q", f); q != `"`+f+`"` {
			f = q // what cannot be seen
		}
		names = append(names, f)
	}
	if more := len(files) - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, " and ")
}

// Ahead counts the commits that to has and from has not, and those that from has and to
// has not: more than 0 of them say that history was rewritten. Both together end at most.
func (r *Mirror) Ahead(ctx context.Context, from, to string, most int) (ahead, lost int, err error) {
	if err := checkIDs(from, to); err != nil {
		return 0, 0, err
	}
	out, err := r.text(ctx, "rev-list", "--count", "--left-right", "--max-count="+strconv.Itoa(most), from+"..."+to)
	if err != nil {
		return 0, 0, fmt.Errorf("count the commits from %s to %s: %w", from, to, err)
	}
	if _, err := fmt.Sscan(out, &lost, &ahead); err != nil {
		return 0, 0, fmt.Errorf("git rev-list printed %q", textcut.Brief(out, 80))
	}
	return ahead, lost, nil
}

// Files returns those of the paths that are plain files of a tree, each up to max bytes,
// with two calls of git.
func (r *Mirror) Files(ctx context.Context, tree string, paths []string, max int64) (map[string][]byte, error) {
	if err := checkIDs(tree); err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return checkPath(p) != nil })
	if len(paths) == 0 { // git would list all of it
		return nil, nil
	}
	there, err := r.list(ctx, tree, paths)
	if err != nil {
		return nil, err
	}
	var names, ids []string
	for _, l := range there {
		if plainMode(l.mode) {
			names, ids = append(names, l.path), append(ids, l.id)
		}
	}
	found := map[string][]byte{}
	err = r.blobs(ctx, ids, func(i int, _ int64, content io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(content, max))
		found[names[i]] = text
		return err
	})
	return found, err
}
