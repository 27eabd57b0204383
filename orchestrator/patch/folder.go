package patch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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
		if f.updated = r.alreadyAt(ctx, f.path, in.Tree); f.updated {
			return f, nil
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
func (r *Mirror) alreadyAt(ctx context.Context, dir, tree string) bool {
	_, err := r.git(ctx, command{dir: dir, gitDir: "-", args: []string{"diff-files", "--quiet", "--ignore-submodules=all"}})
	if err != nil {
		return false
	}
	out, err := r.git(ctx, command{dir: dir, gitDir: "-", args: []string{"write-tree"}})
	return err == nil && strings.TrimSpace(string(out)) == tree
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

// hold makes a second set of folders for a checkout's files, where no agent reaches.
// At a hop the agent runs on while its checkout is read: a folder that it swaps for a
// link at the right moment would lead git, which runs outside of the sandbox, to the
// server's own files. Here every folder is opened below the one before and never
// through a link, and each entry is linked by its inode, so nothing is copied.
func (r *Mirror) hold(ctx context.Context, dir string) (held string, done func(), err error) {
	scratch, done, err := r.scratch()
	if err != nil {
		return "", nil, err
	}
	held = filepath.Join(scratch, "held")
	h := holder{limits: r.home.opts.Limits}
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		err = h.folder(ctx, at, held, "")
	}
	if err != nil {
		done()
		if RefusalOf(err) != nil || ctx.Err() != nil {
			return "", nil, err
		}
		return "", nil, fmt.Errorf("hold the checkout: %w", err)
	}
	return held, done, nil
}

type holder struct {
	limits Limits
	seen   int
}

// folder takes what is in the open folder fd, and closes it. rel is its path in the
// checkout.
func (h *holder) folder(ctx context.Context, fd int, to, rel string) error {
	from := os.NewFile(uintptr(fd), to)
	defer from.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return refuse(CodeBadMode, rel, "%s cannot be read.", Shown(rel))
	}
	entries, err := from.ReadDir(-1)
	if err != nil {
		return os.Chmod(to, 0) // the walk says so, unless it is ignored
	}
	if h.seen += len(entries); h.seen > h.limits.Entries {
		return refuse(CodeTooLarge, "", "The checkout holds more than %d files and folders.", h.limits.Entries)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if rel == "" && e.Name() == ".git" {
			continue // the server never looks into it
		}
		path := filepath.Join(rel, e.Name())
		if err := h.entry(ctx, int(from.Fd()), e, filepath.Join(to, e.Name()), path); err != nil {
			return err
		}
	}
	return nil
}

func (h *holder) entry(ctx context.Context, parent int, e os.DirEntry, to, rel string) error {
	if e.IsDir() && e.Name() == ".git" {
		return os.Mkdir(to, 0o700) // its presence is refused; its content is nobody's business
	}
	if e.IsDir() {
		fd, err := unix.Openat(parent, e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return h.folder(ctx, fd, to, rel)
		case unix.EACCES:
			return os.Mkdir(to, 0)
		case unix.ENOENT:
			return nil // gone since
		case unix.ELOOP, unix.ENOTDIR: // a folder no more: taken as what it is now
		default:
			return fmt.Errorf("%s: %w", Shown(rel), err)
		}
	}
	switch err := unix.Linkat(parent, e.Name(), unix.AT_FDCWD, to, 0); err {
	case nil, unix.ENOENT:
		return nil
	case unix.ENAMETOOLONG:
		return refuse(CodeBadMode, rel, "%s cannot be read.", Shown(rel))
	case unix.EXDEV, unix.EPERM, unix.EMLINK, unix.EOPNOTSUPP:
		return h.copy(parent, e.Name(), to, rel)
	default:
		return fmt.Errorf("%s: %w", Shown(rel), err)
	}
}

// copy is for file systems that cannot link, or not from one folder to the other.
func (h *holder) copy(parent int, name, to, rel string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil // gone since
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(parent, name, target)
		if err != nil {
			return nil
		}
		return os.Symlink(string(target[:n]), to)
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return refuse(CodeBadMode, rel, "%s changes faster than it can be read. Stop changing it before handing on.", Shown(rel))
	default:
		return unix.Mkfifo(to, 0o600) // stands for whatever a repository cannot hold
	}
	if st.Size > 4*h.limits.Bytes {
		return refuse(CodeTooLarge, rel, "%s is larger than a snapshot copies. Keep it elsewhere.", Shown(rel))
	}
	// O_NONBLOCK: a pipe that was put there since must not hang us.
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.WriteFile(to, nil, 0) // unreadable: the walk says so
	}
	in := os.NewFile(uintptr(fd), rel)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(st.Mode&0o777)|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, st.Size))
	return errors.Join(err, out.Close())
}
