package patch

import (
	"context"
	"slices"
	"strings"
)

// Select is the tree in which only some paths of a patch (base → tree) are changed:
// the base with the chosen entries of tree in their place. A rename is chosen by both
// of its paths. A path that the patch does not change, or that cannot be taken
// without another one, is a *Refusal that names it.
func (r *Mirror) Select(ctx context.Context, base, tree string, paths []string) (string, error) {
	if err := r.ensure(ctx); err != nil {
		return "", err
	}
	changes, err := r.Changes(ctx, base, tree)
	if err != nil {
		return "", err
	}
	wanted := map[string]bool{}
	for _, p := range paths {
		wanted[p] = true
	}
	var chosen, left []Change
	for _, c := range changes {
		if wanted[c.Path] {
			chosen = append(chosen, c)
		} else {
			left = append(left, c)
		}
		delete(wanted, c.Path)
	}
	for _, p := range sortedKeys(wanted) {
		return "", refuse(CodeContextMismatch, p, "%s is not among the changed files.", Shown(p))
	}
	if err := separable(chosen, left); err != nil {
		return "", err
	}
	if len(chosen) == 0 {
		return base, nil
	}
	return r.edit(ctx, base, chosen)
}

// separable refuses a choice in which a file would stand where the base still has a
// folder, or the other way round: what gives way must be chosen, too.
func separable(chosen, left []Change) error {
	stays := map[string]bool{} // files of the base whose removal was not chosen
	for _, c := range left {
		if c.NewMode == modeAbsent {
			stays[c.Path] = true
		}
	}
	for _, c := range chosen {
		if c.NewMode == modeAbsent {
			continue
		}
		other := ""
		for p := parent(c.Path); p != "" && other == ""; p = parent(p) {
			if stays[p] {
				other = p
			}
		}
		if i := slices.IndexFunc(left, func(l Change) bool { return stays[l.Path] && strings.HasPrefix(l.Path, c.Path+"/") }); i >= 0 {
			other = left[i].Path
		}
		if other != "" {
			return refuse(CodeContextMismatch, c.Path, "%s takes the place of %s, so neither can be chosen without the other.", Shown(c.Path), Shown(other))
		}
	}
	return nil
}
