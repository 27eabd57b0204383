package patch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// folder is what stands at a local source where a push arrives.
type folder struct {
	bare    bool
	path    string // the folder in which the branch is checked out; "" when nowhere
	updated bool   // an earlier push that was cut short has already moved the files
}

// pushGrace is how long a push that moves files goes on when its caller is told to stop.
const pushGrace = 30 * time.Second

// pushTime is the context of the push. One that moves files is short, and cut short it
// would leave half of them there, like somebody's work, so it comes to its end.
func (f folder) pushTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.path == "" {
		return context.WithCancel(ctx)
	}
	pushing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(pushGrace, cancel) })
	return pushing, func() { stop(); cancel() }
}

// receivePack is the program that takes the push. Settings given to git push
// itself do not reach it, so they stand on its own command line. A bare
// repository keeps its hooks, as for any push; those of a work folder may be
// part of the very files that land (core.hooksPath), so they do not run.
func (f folder) receivePack() string {
	deny := "updateInstead"
	if f.updated {
		deny = "ignore"
	}
	words := []string{"git", "-c", "receive.denyCurrentBranch=" + deny, "-c", "core.fsmonitor=false", "-c", "gc.auto=0",
		"-c", "receive.autogc=false"}
	if !f.bare {
		words = append(words, "-c", "core.hooksPath=/dev/null")
	}
	return strings.Join(append(words, "receive-pack"), " ")
}

// prepareFolder looks whether the branch is checked out at a local source and
// whether anything there is in the way.
func (r *Mirror) prepareFolder(ctx context.Context, in Intent) (folder, error) {
	if !r.repo.Local() {
		return folder{}, nil
	}
	f, err := r.findFolder(ctx, in.Ref)
	if err != nil || f.path == "" || in.Old == "" {
		return f, err
	}
	if err := r.unlockFolder(ctx, f.path, in.Ref); err != nil {
		return f, err
	}
	dirty, err := r.uncommitted(ctx, f.path)
	if err != nil {
		return f, err
	}
	if len(dirty) > 0 {
		if f.updated, err = r.alreadyAt(ctx, f.path, in.Tree); err != nil || f.updated {
			return f, err
		}
		return f, &DirtyFolder{Repository: r.repo.Name, Folder: f.path, Files: dirty, Reason: "uncommitted"}
	}
	changes, err := r.Changes(ctx, in.Onto.Tree, in.Tree)
	if err != nil {
		return f, err
	}
	blocked, err := inTheWay(f.path, changes)
	if err != nil {
		return f, err
	}
	if len(blocked) > 0 {
		return f, &DirtyFolder{Repository: r.repo.Name, Folder: f.path, Files: blocked, Reason: "in_the_way"}
	}
	return f, nil
}

// findFolder reads the source's work trees; the main one may be bare.
func (r *Mirror) findFolder(ctx context.Context, ref string) (folder, error) {
	out, err := r.git(ctx, command{dir: r.repo.Source, gitDir: "-", args: []string{"worktree", "list", "--porcelain", "-z"}})
	if err != nil {
		return folder{}, r.sourceFailure(err)
	}
	var f folder
	for i, block := range strings.Split(string(out), "\x00\x00") {
		path := ""
		for line := range strings.SplitSeq(block, "\x00") {
			switch {
			case strings.HasPrefix(line, "worktree "):
				path = strings.TrimPrefix(line, "worktree ")
			case line == "bare":
				f.bare = f.bare || i == 0
				path = ""
			case line == "branch "+ref && path != "":
				f.path = path
			}
		}
	}
	return f, nil
}

// uncommitted lists tracked files of a folder that differ from its HEAD.
func (r *Mirror) uncommitted(ctx context.Context, dir string) ([]string, error) {
	out, err := r.git(ctx, command{dir: dir, gitDir: "-", args: []string{"status", "--porcelain=v1", "-z",
		"--untracked-files=no", "--ignore-submodules=all", "--no-renames"}})
	if err != nil {
		return nil, r.sourceFailure(err)
	}
	var files []string
	for line := range strings.SplitSeq(string(out), "\x00") {
		if len(line) > 3 && len(files) < maxNamed {
			files = append(files, line[3:])
		}
	}
	return files, nil
}

// alreadyAt: receive-pack moves the files before the ref. Killed between the
// two, it leaves a folder whose index and files are exactly what was about to
// land; then only the ref is missing.
func (r *Mirror) alreadyAt(ctx context.Context, dir, tree string) (bool, error) {
	_, err := r.git(ctx, command{dir: dir, gitDir: "-", args: []string{"diff-files", "--quiet", "--ignore-submodules=all"}})
	if err != nil {
		return false, nil
	}
	out, err := r.git(ctx, command{dir: dir, gitDir: "-", args: []string{"write-tree"}})
	return err == nil && strings.TrimSpace(string(out)) == tree, nil
}

// inTheWay lists what stands in a folder where the change would add something,
// tracked or not: git itself would overwrite ignored files.
func inTheWay(dir string, changes []Change) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("look at the folder: %w", err)
	}
	defer root.Close()
	gone := map[string]bool{}
	for _, c := range changes {
		if c.NewMode == modeAbsent {
			gone[c.Path] = true
		}
	}
	var blocked []string
	for _, c := range changes {
		if c.OldMode != modeAbsent || len(blocked) >= maxNamed {
			continue
		}
		at, err := obstacle(root, c.Path, gone)
		if err != nil {
			return nil, err
		}
		if at != "" {
			blocked = append(blocked, at)
		}
	}
	return blocked, nil
}

// obstacle returns what stands where path is to be added, "" when the way is
// free. What the same change removes (gone) is no obstacle. Every folder on the
// way is looked at by itself, so a link among them counts as an obstacle.
func obstacle(root *os.Root, path string, gone map[string]bool) (string, error) {
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		part := path[:i]
		info, err := root.Lstat(part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("look at %s: %w", Shown(part), err)
		case i < len(path) && info.IsDir():
		case i < len(path):
			if gone[part] {
				return "", nil
			}
			return part, nil
		case info.IsDir():
			return leftover(root, part, gone)
		case !gone[part]:
			return part, nil
		}
	}
	return "", nil
}

// leftover finds something in a folder that the change does not remove.
func leftover(root *os.Root, dir string, gone map[string]bool) (string, error) {
	found := ""
	err := fs.WalkDir(root.FS(), filepath.ToSlash(dir), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && !gone[p] {
			found = p
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", Shown(dir), err)
	}
	return found, nil
}

// InTheWay looks whether the folder of a local source, with the landing branch checked out,
// holds changes that nobody committed, which a landing would wait for. It returns nil where
// the way is free.
func (r *Mirror) InTheWay(ctx context.Context, branch string) (*DirtyFolder, error) {
	if !r.repo.Local() || r.repo.Deliver == DeliverBranch {
		return nil, nil
	}
	f, err := r.findFolder(ctx, "refs/heads/"+branch)
	if err != nil || f.path == "" {
		return nil, err
	}
	files, err := r.uncommitted(ctx, f.path)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	return &DirtyFolder{Repository: r.repo.Name, Folder: f.path, Files: files, Reason: "uncommitted"}, nil
}
