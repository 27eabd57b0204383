package patch

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"gatehouse/orchestrator/spelling"
)

// Validate holds what changed between two trees against the rules, in a fixed
// order: paths, modes, .git in any disguise, submodules, sizes, names that are
// another one somewhere, blocked content. The first kind of problem comes back as a *Refusal that names every
// file with it.
func (r *Mirror) Validate(ctx context.Context, baseTree, tree string, rules Rules) error {
	changes, err := r.Changes(ctx, baseTree, tree)
	if err != nil || len(changes) == 0 {
		return err
	}
	limits := rules.Limits.over(r.home.opts.Limits)
	if err := r.checkPaths(changes, rules); err != nil {
		return err
	}
	if err := r.checkModes(ctx, changes); err != nil {
		return err
	}
	if err := r.checkSizes(ctx, baseTree, tree, changes, limits); err != nil {
		return err
	}
	if err := r.checkAliases(ctx, baseTree, changes); err != nil {
		return err
	}
	return r.checkContent(ctx, changes)
}

// Protected refuses changes of what the repository protects, as Validate does.
func (r *Mirror) Protected(ctx context.Context, baseTree, tree string) error {
	if len(r.repo.Protect) == 0 {
		return nil
	}
	changes, err := r.Changes(ctx, baseTree, tree)
	if err != nil {
		return err
	}
	return r.checkPaths(changes, Rules{})
}

// checkPaths: in the repository, not protected, in what the agent may write.
func (r *Mirror) checkPaths(changes []Change, rules Rules) error {
	protect, err := parseGlobs(append(append([]string{}, r.repo.Protect...), rules.Protect...))
	if err != nil {
		return fmt.Errorf("protect of %s: %w", r.repo.Name, err)
	}
	folded := protect.folded()
	writes, err := parseGlobs(rules.Writes)
	if err != nil {
		return fmt.Errorf("writes: %w", err)
	}
	var outside, protected []string
	for _, c := range changes {
		if bad := checkPath(c.Path); bad != nil && bad.Code == CodePathOutside {
			return bad
		}
		switch {
		case protect.match(c.Path), folded.match(spelling.Skeleton(c.Path)):
			protected = append(protected, c.Path)
		case rules.Writes != nil && !writes.match(c.Path):
			outside = append(outside, c.Path)
		}
	}
	if len(outside) > 0 {
		return refuseAll(CodePathOutside, outside, "%s: outside of what this agent may write. The patch was not offered for approval. Ask for a change of `writes`, or leave it alone.", named(outside))
	}
	if len(protected) > 0 {
		return refuseAll(CodePathProtected, protected, "%s: protected in %s. The patch was not offered for approval. Ask a maintainer to change `protect`.", named(protected), r.repo.Name)
	}
	return nil
}

// checkModes: plain modes, links that stay inside, no .git, no submodules.
func (r *Mirror) checkModes(ctx context.Context, changes []Change) error {
	var bad, inside, submodules []string
	var links []Change
	for _, c := range changes {
		switch c.NewMode {
		case modeFile, modeExec, modeAbsent:
		case modeLink:
			links = append(links, c)
		case modeGit:
		default:
			bad = append(bad, c.Path)
		}
		if c.NewMode == modeGit || c.OldMode == modeGit {
			submodules = append(submodules, c.Path)
		}
		if c.NewMode != modeAbsent && checkPath(c.Path) != nil {
			inside = append(inside, c.Path)
		}
		if c.NewMode == modeLink && gitMeta(path.Base(c.Path)) {
			bad = append(bad, c.Path)
		}
	}
	if len(bad) > 0 {
		return refuseAll(CodeBadMode, bad, "%s: only plain files, programs and links are taken here.", named(bad))
	}
	if err := r.checkLinks(ctx, links); err != nil {
		return err
	}
	if len(inside) > 0 {
		return refuseAll(CodeGitInternal, inside, "%s would write into git's own folder.", named(inside))
	}
	if len(submodules) > 0 {
		return refuseAll(CodeGitlink, submodules, "%s: agents may not add, change or remove submodules.", named(submodules))
	}
	return nil
}

// maxTarget is the longest link that Linux takes (PATH_MAX), in bytes.
const maxTarget = 4096

func (r *Mirror) checkLinks(ctx context.Context, links []Change) error {
	var ids, out []string
	for _, l := range links {
		ids = append(ids, l.NewID)
	}
	err := r.blobs(ctx, ids, func(i int, size int64, in io.Reader) error {
		target, err := io.ReadAll(io.LimitReader(in, maxTarget))
		if err != nil {
			return err
		}
		if size >= maxTarget || !staysInside(links[i].Path, string(target)) {
			out = append(out, links[i].Path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(out) > 0 {
		return refuseAll(CodeSymlink, out, "%s: a link must point to a place inside the repository, by a relative path.", named(out))
	}
	return nil
}

// staysInside reports whether a link's target cannot leave the repository. Going
// up is allowed only at the start: after a name, ".." could go up from wherever
// another link leads.
func staysInside(link, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") || strings.ContainsAny(target, "\x00\\\n") {
		return false
	}
	depth := strings.Count(link, "/")
	down := false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			if depth--; down || depth < 0 {
				return false
			}
		case gitName(part):
			return false
		default:
			down = true
		}
	}
	return true
}

// checkSizes: how many files, lines and inflated bytes the patch brings.
func (r *Mirror) checkSizes(ctx context.Context, baseTree, tree string, changes []Change, limits Limits) error {
	if len(changes) > limits.Files {
		return refuse(CodeTooLarge, "", "The patch changes %d files; %d is the limit. Split the task.", len(changes), limits.Files)
	}
	var ids []string
	for _, c := range changes {
		if c.NewMode != modeAbsent && c.NewID != c.OldID {
			ids = append(ids, c.NewID)
		}
	}
	sizes, err := r.sizes(ctx, ids)
	if err != nil {
		return err
	}
	var total int64
	var large []string
	for _, c := range changes {
		if c.NewMode == modeAbsent || c.NewID == c.OldID {
			continue
		}
		n, ok := sizes[c.NewID]
		if !ok || n < 0 {
			return fmt.Errorf("%w: %s of %q", ErrMissing, c.NewID, c.Path)
		}
		if total += n; n > limits.FileBytes {
			large = append(large, c.Path)
		}
	}
	if len(large) > 0 {
		return refuseAll(CodeTooLarge, large, "%s: %d kB is the limit for one file. Keep it elsewhere.", named(large), limits.FileBytes>>10)
	}
	if total > limits.Bytes {
		return refuse(CodeTooLarge, "", "The patch brings %d kB; %d kB is the limit. Split the task.", total>>10, limits.Bytes>>10)
	}
	return r.checkLines(ctx, baseTree, tree, limits)
}

func (r *Mirror) checkLines(ctx context.Context, baseTree, tree string, limits Limits) error {
	files, err := r.stat(ctx, baseTree, tree, noRenames)
	if err != nil {
		return err
	}
	lines := 0
	for _, f := range files {
		lines += f.Added + f.Removed
	}
	if lines > limits.Lines {
		return refuse(CodeTooLarge, "", "The patch changes %d lines; %d is the limit. Split the task.", lines, limits.Lines)
	}
	return nil
}

// checkContent refuses private keys that the base does not already hold.
func (r *Mirror) checkContent(ctx context.Context, changes []Change) error {
	var ids []string
	var owner []int
	for i, c := range changes {
		if c.NewMode != modeAbsent && c.NewID != c.OldID {
			ids, owner = append(ids, c.NewID), append(owner, i)
		}
	}
	found := map[int]int{}
	count := func(of []int) func(int, int64, io.Reader) error {
		return func(i int, size int64, in io.Reader) error {
			content, err := io.ReadAll(in)
			if n := countPrivateKeys(content); n > 0 {
				found[of[i]] += n
			}
			return err
		}
	}
	if err := r.blobs(ctx, ids, count(owner)); err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	return r.newKeys(ctx, changes, found)
}

func (r *Mirror) newKeys(ctx context.Context, changes []Change, found map[int]int) error {
	var secret []string
	for i, c := range changes {
		n := found[i]
		if n == 0 {
			continue
		}
		if c.OldMode != modeAbsent {
			err := r.blobs(ctx, []string{c.OldID}, func(_ int, _ int64, in io.Reader) error {
				content, err := io.ReadAll(in)
				n -= countPrivateKeys(content)
				return err
			})
			if err != nil {
				return err
			}
		}
		if n > 0 {
			secret = append(secret, c.Path)
		}
	}
	if len(secret) == 0 {
		return nil
	}
	return refuseAll(CodeSecret, secret, "%s holds a private key. It was not offered for approval. Remove it and treat the key as known.", named(secret))
}

// checkSwell refuses a patch that is small as text and large as files, such as many copies
// of one file, before anything holds its content. Sizes are counted from the base tree:
// what a file was, and the lines that come and go.
func (r *Mirror) checkSwell(ctx context.Context, base map[string]entry, files []filePatch) error {
	var ids []string
	for _, f := range files {
		if e, ok := base[f.old]; ok && f.old != "" {
			ids = append(ids, e.id)
		}
	}
	slices.Sort(ids)
	sizes, err := r.sizes(ctx, slices.Compact(ids))
	if err != nil {
		return err
	}
	limits := r.home.opts.Limits
	var total int64
	for i := range files {
		f := &files[i]
		old := sizes[base[f.old].id]
		if f.old != "" && old > limits.FileBytes && len(f.hunks) > 0 {
			return refuse(CodeTooLarge, f.old, "A file that the patch changes is %d bytes long; %d is the limit.", old, limits.FileBytes)
		}
		if f.status == Deleted {
			continue
		}
		now := max(0, old) + f.grows()
		if now > limits.FileBytes {
			return refuse(CodeTooLarge, f.new, "%s would be %d bytes long; %d is the limit.", Shown(f.new), now, limits.FileBytes)
		}
		if total += max(0, now); total > limits.Bytes {
			return refuse(CodeTooLarge, "", "The patch brings more than %d kB, renamed and copied files counted whole; that is the limit. Split the task.", limits.Bytes>>10)
		}
	}
	return nil
}

// grows is how many bytes the hunks add; below 0 when they take more away.
func (f *filePatch) grows() int64 {
	var n int64
	for _, h := range f.hunks {
		for _, l := range h.lines {
			switch l.op {
			case '+':
				n += int64(len(l.text))
			case '-':
				n -= int64(len(l.text))
			}
		}
	}
	return n
}
