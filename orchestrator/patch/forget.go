package patch

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// ownerLen is the length of a delegation's id, which keys of revisions and trees begin with.
const ownerLen = len("dlg_") + 26

// Forget removes from the mirror what belongs to delegations that are gone: their
// revisions, their kept trees, and agents' branches that end there. gone is asked with the
// ids of those that the mirror knows. Objects that nothing reaches then go once they are
// three days old, so that what a run is writing just now stays. It returns how many refs
// it removed; a mirror that is not on this machine has none.
func (r *Mirror) Forget(ctx context.Context, gone func(ids []string) (map[string]bool, error)) (int, error) {
	if !r.onDisk() {
		return 0, nil
	}
	out, err := r.git(ctx, command{args: []string{"for-each-ref", "--format=%(objectname) %(refname)", "refs/gatehouse", "refs/heads/" + branchPrefix}})
	if err != nil {
		return 0, fmt.Errorf("list what is kept: %w", err)
	}
	type kept struct{ object, ref, owner string }
	var all []kept
	var ids []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		object, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		k := kept{object: object, ref: ref, owner: ownerOf(ref)}
		all = append(all, k)
		if k.owner != "" && !seen[k.owner] {
			seen[k.owner] = true
			ids = append(ids, k.owner)
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	which, err := gone(ids)
	if err != nil {
		return 0, err
	}
	var in bytes.Buffer
	removed, ends, used := 0, map[string]bool{}, map[string]bool{}
	for _, k := range all {
		switch {
		case which[k.owner]:
			fmt.Fprintf(&in, "delete %s %s\n", k.ref, k.object)
			removed, ends[k.object] = removed+1, true
		case k.owner != "":
			used[k.object] = true
		}
	}
	for _, k := range all {
		if k.owner == "" && ends[k.object] && !used[k.object] && strings.HasPrefix(k.ref, "refs/heads/"+branchPrefix) {
			fmt.Fprintf(&in, "delete %s %s\n", k.ref, k.object)
			removed++
		}
	}
	if removed == 0 {
		return 0, nil
	}
	if _, err := r.git(ctx, command{args: []string{"update-ref", "--stdin"}, stdin: &in}); err != nil {
		return 0, fmt.Errorf("remove what is gone: %w", err)
	}
	_, err = r.git(ctx, command{args: []string{"gc", "--quiet", "--prune=3.days.ago"}})
	return removed, err
}

// ownerOf is the id of the delegation that a ref of a revision or a tree belongs to, ""
// for other refs.
func ownerOf(ref string) string {
	for _, prefix := range []string{"refs/gatehouse/rev/", "refs/gatehouse/tree/"} {
		if key, ok := strings.CutPrefix(ref, prefix); ok && len(key) >= ownerLen && strings.HasPrefix(key, "dlg_") {
			return key[:ownerLen]
		}
	}
	return ""
}
