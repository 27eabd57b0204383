package patch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// MergeBack takes what a child changed (trees from → to) into the folder of its
// caller, which started from `from` and may have gone on working. Exactly the
// changed paths are taken. Where the caller changed one of them too, nothing is
// written and the *Refusal (context_mismatch) lists them.
//
// The folder belongs to an agent and may be hostile, even while we write: all
// access goes through an os.Root, which no link can lead out of, and a link
// among the folders of a path is refused, so that nothing lands elsewhere
// inside either.
func (r *Mirror) MergeBack(ctx context.Context, dir, from, to string) error {
	if err := r.ensure(ctx); err != nil {
		return err
	}
	changes, err := r.Changes(ctx, from, to)
	if err != nil || len(changes) == 0 {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return refuse(CodePathOutside, "", "The caller's checkout is gone, so the change cannot go back into it.")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the caller's checkout: %w", err)
	}
	defer root.Close()
	w := &writer{r: r, root: root, gone: map[string]bool{}, own: map[string]bool{}}
	for _, c := range changes {
		if bad := checkPath(c.Path); bad != nil {
			return bad
		}
		if c.NewMode == modeGit || c.OldMode == modeGit {
			return refuse(CodeGitlink, c.Path, "%s is a submodule, which agents may not change.", Shown(c.Path))
		}
		w.own[c.Path] = true
		if c.NewMode == modeAbsent {
			w.gone[c.Path] = true
		}
	}
	todo, err := w.compare(changes)
	if err != nil {
		return err
	}
	return w.write(ctx, todo)
}

type writer struct {
	r    *Mirror
	root *os.Root
	own  map[string]bool // every path of the change; each is compared by itself
	gone map[string]bool // those that it removes
}

// compare finds what is still to do, and refuses where the folder has moved on.
func (w *writer) compare(changes []Change) ([]Change, error) {
	var todo []Change
	var moved []string
	for _, c := range changes {
		switch w.current(c) {
		case entryOf(c.NewMode, c.NewID):
		case entryOf(c.OldMode, c.OldID):
			todo = append(todo, c)
		default:
			moved = append(moved, c.Path)
		}
	}
	if len(moved) > 0 {
		slices.Sort(moved)
		return nil, refuseAll(CodeContextMismatch, moved, "%s changed in the caller's checkout in the meantime, so nothing was taken back.", named(moved))
	}
	return todo, nil
}

func entryOf(mode, id string) entry {
	if mode == modeAbsent {
		return entry{}
	}
	return entry{mode, id}
}

// inWay is an entry that no tree can hold: the comparison never matches it.
var inWay = entry{mode: "in the way"}

// current is what stands at a path now, as git would name it. What the change
// itself removes does not stand in the way of what it adds.
func (w *writer) current(c Change) entry {
	for i := range len(c.Path) {
		if c.Path[i] != '/' {
			continue
		}
		info, err := w.root.Lstat(c.Path[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return entry{}
		case err != nil:
			return inWay
		case !info.IsDir() && w.gone[c.Path[:i]]:
			return entry{}
		case !info.IsDir():
			return inWay
		}
	}
	info, err := w.root.Lstat(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entry{}
	case err != nil:
		return inWay
	case info.IsDir():
		if at, err := leftover(w.root, c.Path, w.own); at != "" || err != nil {
			return inWay
		}
		return entry{}
	}
	return w.read(c.Path, info)
}

func (w *writer) read(name string, info fs.FileInfo) entry {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(name)
		if err != nil {
			return inWay
		}
		return entry{modeLink, blobID(w.r.format(), []byte(target))}
	case !info.Mode().IsRegular(), info.Size() > w.r.home.opts.Limits.FileBytes*4:
		return inWay
	}
	mode := modeFile
	if info.Mode().Perm()&0o100 != 0 {
		mode = modeExec
	}
	// O_NONBLOCK: a pipe put there since must not hang us.
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return inWay
	}
	defer f.Close()
	if again, err := f.Stat(); err != nil || !os.SameFile(info, again) {
		return inWay
	}
	h := newHash(w.r.format())
	fmt.Fprintf(h, "blob %d\x00", info.Size())
	n, err := io.Copy(h, io.LimitReader(f, info.Size()+1))
	if err != nil || n != info.Size() {
		return inWay
	}
	return entry{mode, fmt.Sprintf("%x", h.Sum(nil))}
}

// write removes first and then writes, so that a file may become a folder.
func (w *writer) write(ctx context.Context, todo []Change) error {
	var ids []string
	var writes []Change
	for _, c := range todo {
		if c.NewMode == modeAbsent {
			if err := w.remove(c.Path); err != nil {
				return fmt.Errorf("take the change back: %w", err)
			}
			continue
		}
		writes, ids = append(writes, c), append(ids, c.NewID)
	}
	err := w.r.blobs(ctx, ids, func(i int, size int64, in io.Reader) error {
		return w.put(writes[i], size, in)
	})
	if err != nil {
		return fmt.Errorf("take the change back: %w", err)
	}
	return nil
}

// remove deletes a file and then the folders that it leaves empty, as git does.
func (w *writer) remove(name string) error {
	if err := w.noLinks(name); err != nil {
		return err
	}
	if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for p := parent(name); p != ""; p = parent(p) {
		if w.root.Remove(p) != nil {
			return nil // not empty
		}
	}
	return nil
}

// put writes beside the name and renames, so that whoever reads the folder sees
// the old file or the new one.
func (w *writer) put(c Change, size int64, in io.Reader) error {
	folder := parent(c.Path)
	if folder != "" {
		if err := w.root.MkdirAll(filepath.FromSlash(folder), 0o755); err != nil {
			return err
		}
	}
	if err := w.noLinks(c.Path); err != nil {
		return err
	}
	temp := path.Join(folder, ".gatehouse-"+rand.Text()) // a name that the agent cannot have taken before
	defer func() { _ = w.root.Remove(temp) }()
	if c.NewMode == modeLink {
		target, err := io.ReadAll(io.LimitReader(in, maxTarget))
		if err != nil {
			return err
		}
		if !staysInside(c.Path, string(target)) {
			return refuse(CodeSymlink, c.Path, "%s: a link must point to a place inside the repository, by a relative path.", Shown(c.Path))
		}
		if err := w.root.Symlink(string(target), temp); err != nil {
			return err
		}
	} else if err := w.copy(temp, c.NewMode, size, in); err != nil {
		return err
	}
	// An empty folder may stand where a file goes; a full one was refused before.
	if info, err := w.root.Lstat(c.Path); err == nil && info.IsDir() {
		if err := w.root.Remove(c.Path); err != nil {
			return err
		}
	}
	return w.root.Rename(temp, c.Path)
}

func (w *writer) copy(name, mode string, size int64, in io.Reader) error {
	perm := fs.FileMode(0o644)
	if mode == modeExec {
		perm = 0o755
	}
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, in)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, f.Close())
}

// noLinks makes sure that every folder of a path is a folder and no link.
func (w *writer) noLinks(name string) error {
	for p := parent(name); p != ""; p = parent(p) {
		info, err := w.root.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return refuse(CodeSymlink, name, "%s is no plain folder in the caller's checkout, so nothing is written below it.", Shown(p))
		}
	}
	if strings.HasPrefix(name, ".git/") {
		return refuse(CodeGitInternal, name, "%s would write into git's own folder.", Shown(name))
	}
	return nil
}
