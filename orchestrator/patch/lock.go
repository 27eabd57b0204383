package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// git leaves its lock files behind when it is killed, or the machine is, and then refuses
// every later change. What nobody can still be using is removed, with a word in the log.
const (
	// mirrorLock is how old a lock in a mirror is, at which nobody works, before it counts
	// as left behind. The mirror is ours alone.
	mirrorLock = 2 * time.Second
	// folderLock is the same for the folder of a person, who may have an editor open.
	folderLock = 10 * time.Minute
	// lockPause and lockTries are how long a lock that is in use is waited for.
	lockPause = 100 * time.Millisecond
	lockTries = 50
)

var lockTaken = regexp.MustCompile(`Unable to create '([^'\n]+\.lock)': File exists`)

// git runs one command to its end and returns what it printed. A lock in the mirror that is
// in its way is waited for, and removed when it was left behind.
func (r *Mirror) git(ctx context.Context, c command) ([]byte, error) {
	for try := 0; ; try++ {
		out, err := r.once(ctx, c)
		m := lockTaken.FindStringSubmatch(stderrOf(err))
		if m == nil || try == lockTries || !strings.HasPrefix(m[1], r.dir+"/") || !rewind(c.stdin) {
			return out, err
		}
		if r.unlock(m[1], mirrorLock) {
			continue
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(lockPause):
		}
	}
}

// rewind makes a command's input ready to be read again.
func rewind(in io.Reader) bool {
	if in == nil {
		return true
	}
	s, ok := in.(io.Seeker)
	if !ok {
		return false
	}
	_, err := s.Seek(0, io.SeekStart)
	return err == nil
}

// unlock removes a lock file that is older than age and that no git can be using. It
// reports whether the way is free.
func (r *Mirror) unlock(lock string, age time.Duration) bool {
	r.st.lock.Lock()
	defer r.st.lock.Unlock()
	info, err := os.Lstat(lock)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < age || r.gitAt(filepath.Dir(lock)) {
		return false
	}
	if err := os.Remove(lock); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.home.opts.Logger.Warn("a lock that git left behind cannot be removed", "file", lock, "err", err)
		return false
	}
	r.home.opts.Logger.Warn("a lock that git left behind was removed", "file", lock, "since", info.ModTime())
	return true
}

// gitAt reports whether a git on this machine works at the repository that dir belongs to,
// or one that may not be looked at.
func (r *Mirror) gitAt(dir string) bool {
	root := dir
	if i := strings.Index(dir+"/", "/.git/"); i >= 0 {
		root = dir[:i]
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		at := filepath.Join("/proc", e.Name())
		name, err := os.ReadFile(filepath.Join(at, "comm"))
		if err != nil || !bytes.HasPrefix(name, []byte("git")) {
			continue
		}
		env, err := os.ReadFile(filepath.Join(at, "environ"))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has just ended
		}
		if err != nil {
			return true // another person's
		}
		cwd, _ := os.Readlink(filepath.Join(at, "cwd"))
		if cwd == root || strings.HasPrefix(cwd, root+"/") || bytes.Contains(append([]byte{0}, env...), []byte("\x00GIT_DIR="+r.dir+"\x00")) {
			return true
		}
	}
	return false
}

// unlockFolder removes what a landing that was cut short, or a git that died, left behind
// in the folder that a landing is about to move. Only one landing is at it (see alone).
func (r *Mirror) unlockFolder(ctx context.Context, path, ref string) error {
	out, err := r.once(ctx, command{dir: path, gitDir: "-", args: []string{"rev-parse", "--absolute-git-dir", "--path-format=absolute", "--git-common-dir"}})
	if err != nil {
		return r.sourceFailure(err)
	}
	dirs := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(dirs) != 2 {
		return nil
	}
	for _, lock := range []string{filepath.Join(dirs[0], "index.lock"), filepath.Join(dirs[0], "HEAD.lock"), filepath.Join(dirs[1], ref+".lock"), filepath.Join(dirs[1], "packed-refs.lock")} {
		if !r.unlock(lock, folderLock) {
			return r.source(SourceUnreachable, nil, "%s is busy: git works in %s, or left %s behind; the file is removed by itself once it is %s old and no git runs there. The approval stands.",
				r.repo.Name, path, lock, folderLock)
		}
	}
	return nil
}

// How long a landing waits before it asks for the folder again, and after which time it
// gives its place to others and says so: a push may hang in a filter of the people's own.
const (
	alonePause = 20 * time.Millisecond
	aloneTime  = time.Minute
)

// alone waits until no other landing, of this process or of another node on this
// machine, moves the local source. receive-pack moves the files before the ref: of two
// at once the one that loses the ref would leave its files behind, and a folder that
// looks like somebody's uncommitted work. The lock is on the open folder, so nothing is
// written and none stays behind. A push gets the folder that is held: git outlives a
// server that is killed, and the lock lasts until both have let go. nil is held by nobody.
func (r *Mirror) alone(ctx context.Context) (held *os.File, release func(), err error) {
	if !r.repo.Local() {
		return nil, func() {}, nil
	}
	f, err := os.Open(r.repo.Source)
	if err != nil {
		return nil, func() {}, nil // what is wrong with the folder is said by who looks at it next
	}
	limit := time.After(aloneTime)
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil, unix.ENOLCK, unix.EOPNOTSUPP: // a file system without locks: as good as it gets
			return f, func() { _ = f.Close() }, nil
		case unix.EWOULDBLOCK, unix.EINTR:
		default:
			_ = f.Close()
			return nil, nil, fmt.Errorf("wait for other landings: %w", err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, nil, context.Cause(ctx)
		case <-limit:
			_ = f.Close()
			return nil, nil, r.source(SourceUnreachable, nil, "%s is busy: another landing still moves its folder. The approval stands.", r.repo.Name)
		case <-time.After(alonePause):
		}
	}
}
