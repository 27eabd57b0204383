package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Checkout makes dir, which must not exist or be empty, a working copy for one
// run: a repository of its own with the history of commit, no remote, and the
// files of tree. Where tree is not the commit's own ("" is), the difference
// stands there as changes that are not committed.
//
// History comes through git's own transport, never by shared or linked object
// files, so nothing that the run does to its repository reaches the mirror.
func (r *Mirror) Checkout(ctx context.Context, commit, tree, dir string) error {
	if err := checkIDs(commit); err != nil {
		return err
	}
	if err := r.ensure(ctx); err != nil {
		return err
	}
	own, err := r.text(ctx, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
	if err != nil {
		return fmt.Errorf("check out %s: %w: %w", commit, ErrMissing, err)
	}
	tree = cmp.Or(tree, own)
	if err := checkIDs(tree); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("check out into %s: %w", dir, err)
	} else if len(entries) > 0 {
		return fmt.Errorf("check out into %s: the folder is not empty", dir)
	}
	if err := r.clone(ctx, commit, dir); err != nil {
		return err
	}
	return r.fill(ctx, commit, own, tree, dir)
}

// clone makes the repository with the history of commit on a branch of the
// target's name.
func (r *Mirror) clone(ctx context.Context, commit, dir string) error {
	branch := cmp.Or(r.target(), "main")
	_, err := r.git(ctx, command{gitDir: "-", args: []string{"init", "--quiet", "--object-format=" + r.format(),
		"--template=" + filepath.Join(r.home.dir, "template"), "--initial-branch=" + branch, "--", dir}})
	if err != nil {
		return fmt.Errorf("make the checkout: %w", err)
	}
	own := filepath.Join(dir, ".git")
	_, err = r.git(ctx, command{gitDir: own, args: []string{"-c", "core.fsync=none", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok",
		"--", r.dir, commit + ":refs/heads/" + branch}})
	if err != nil {
		return fmt.Errorf("make the checkout: %w", err)
	}
	config, err := os.OpenFile(filepath.Join(own, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("make the checkout: %w", err)
	}
	// An agent that commits by itself needs some identity; the server makes its own commits.
	_, err = config.WriteString("[user]\n\tname = Gatehouse agent\n\temail = agent@localhost\n[gc]\n\tauto = 0\n[core]\n\tautocrlf = false\n")
	return errors.Join(err, config.Close())
}

// fill writes the files of tree, with objects and attributes of the mirror, and
// leaves the index at commit.
func (r *Mirror) fill(ctx context.Context, commit, own, tree, dir string) error {
	file := filepath.Join(dir, ".git", "index")
	work := []string{"GIT_WORK_TREE=" + dir, "GIT_INDEX_FILE=" + file}
	if _, err := r.git(ctx, command{dir: dir, env: work, args: []string{"read-tree", "--reset", "-u", tree}}); err != nil {
		return fmt.Errorf("write the files of the checkout: %w", r.missing(err))
	}
	if tree == own {
		return nil
	}
	// -m keeps what the index knows of files that are the same in both trees.
	if _, err := r.git(ctx, command{dir: dir, env: work, args: []string{"read-tree", "-m", commit}}); err != nil {
		return fmt.Errorf("set the index of the checkout: %w", err)
	}
	return nil
}

// format is the repository's object format.
func (r *Mirror) format() string {
	if f := r.st.get().format; f != "" {
		return f
	}
	return "sha1"
}

// Snapshot computes the tree of a checkout's files as the server sees them. The
// agent's own .git plays no part: it may be broken, hostile or gone. What a
// .gitignore leaves out is listed, not taken; what the base holds stays tracked.
// What cannot become a tree is a *Refusal. A tree equal to baseTree is no patch.
func (r *Mirror) Snapshot(ctx context.Context, dir, baseTree string) (Snapshot, error) {
	if err := r.ensure(ctx); err != nil {
		return Snapshot{}, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	if err := present(dir); err != nil {
		return Snapshot{}, err
	}
	dir, done, err := r.hold(ctx, dir)
	if err != nil {
		return Snapshot{}, err
	}
	defer done()
	found, err := look(ctx, dir, r.home.opts.Limits)
	if err != nil {
		return Snapshot{}, err
	}
	ix, err := r.newIndex(ctx, baseTree)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.done()
	in := func(args ...string) ([]byte, error) {
		return ix.git(ctx, command{dir: dir, args: args, max: 512 << 20,
			env: []string{"GIT_WORK_TREE=" + dir}})
	}
	out, err := in("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return Snapshot{}, r.snapshotFailure(dir, err)
	}
	snap := Snapshot{}
	ignored := parseIgnored(string(out))
	for _, name := range sortedKeys(ignored) {
		if len(snap.Ignored) < maxNamed && !ignored.has(parent(strings.TrimSuffix(name, "/"))) {
			snap.Ignored = append(snap.Ignored, name)
		}
	}
	if err := r.judge(ctx, baseTree, found, ignored); err != nil {
		return Snapshot{}, err
	}
	if _, err := in("add", "--all", "--", "."); err != nil {
		return Snapshot{}, r.snapshotFailure(dir, err)
	}
	snap.Tree, err = ix.write(ctx)
	return snap, err
}

// parseIgnored reads what git leaves out; folders end in "/".
func parseIgnored(out string) ignoredSet {
	ignored := ignoredSet{}
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" && name != ".git/" {
			ignored[name] = true
		}
	}
	return ignored
}

// judge turns what the walk found, less what is ignored, into a refusal.
func (r *Mirror) judge(ctx context.Context, baseTree string, found *survey, ignored ignoredSet) error {
	var first *Refusal
	var files []string
	for _, f := range found.findings {
		if ignored.has(f.path) {
			continue
		}
		first = cmp.Or(first, f.refusal)
		if f.refusal.Code == first.Code && len(files) < maxNamed {
			files = append(files, f.path)
		}
	}
	if first != nil {
		first.Files = files
		return first
	}
	limits := r.home.opts.Limits
	if len(found.large) == 0 && found.bytes <= limits.Bytes {
		return nil
	}
	// Only now is it worth asking how large the base itself is.
	known, total, err := r.baseSizes(ctx, baseTree)
	if err != nil {
		return err
	}
	var large []string
	for path, size := range found.large {
		if !ignored.has(path) && known[path] != size {
			large = append(large, path)
		}
	}
	if len(large) > 0 {
		slices.Sort(large)
		return refuseAll(CodeTooLarge, large, "%s: %d MB is the limit for one file. Ignore it, or keep it elsewhere.", named(large), limits.FileBytes>>20)
	}
	if len(ignored) == 0 && found.bytes > total+4*limits.Bytes {
		return refuse(CodeTooLarge, "", "The checkout grew by %d MB; a patch may bring %d MB.", (found.bytes-total)>>20, limits.Bytes>>20)
	}
	return nil
}

// baseSizes returns the size of every file of a tree, and their sum.
func (r *Mirror) baseSizes(ctx context.Context, tree string) (map[string]int64, int64, error) {
	all, err := r.list(ctx, tree, nil, "-l")
	sizes := map[string]int64{}
	var total int64
	for _, l := range all {
		if n, err := strconv.ParseInt(l.size, 10, 64); err == nil { // a submodule has none
			sizes[l.path] = n
			total += n
		}
	}
	return sizes, total, err
}

// snapshotFailure says what git stumbled over in the agent's folder, in the
// terms of a refusal where it is the folder's fault.
func (r *Mirror) snapshotFailure(dir string, err error) error {
	if _, serr := os.Lstat(dir); errors.Is(serr, os.ErrNotExist) {
		return refuse(CodePathOutside, "", "The checkout is gone: the agent deleted or moved its own folder. Nothing was taken from it.")
	}
	said := stderrOf(err)
	switch {
	case strings.Contains(said, "nvalid path '"):
		_, rest, _ := strings.Cut(said, "nvalid path '")
		path, _, _ := strings.Cut(rest, "'")
		return refuse(CodeGitInternal, path, "%s is a name that git does not take.", Shown(path))
	case strings.Contains(said, "Permission denied"), strings.Contains(said, "can only add regular files"):
		return refuse(CodeBadMode, "", "A file of the checkout cannot be read: %s.", Shown(lastLine(said)))
	case strings.Contains(said, "short read"):
		return refuse(CodeBadMode, "", "A file of the checkout changed while it was read: %s. Stop writing before handing on.", Shown(lastLine(said)))
	case strings.Contains(said, "does not have a commit checked out"):
		return refuse(CodeGitlink, "", "A repository of its own lies inside the checkout: %s.", Shown(lastLine(said)))
	}
	return fmt.Errorf("take the snapshot: %w", err)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
