package patch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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
		var refusal *Refusal
		if errors.As(err, &refusal) || ctx.Err() != nil {
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
