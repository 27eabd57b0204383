package patch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// finding is something in a folder that cannot become part of a tree.
type finding struct {
	path    string
	refusal *Refusal
}

// survey is what a walk over a folder found, before git looks at it.
type survey struct {
	findings []finding
	large    map[string]int64 // regular files above the limit
	bytes    int64
	files    int
}

// surveyor walks a checkout by lstat only; it opens no file and follows no link.
type surveyor struct {
	root   string
	limits Limits
	seen   int
	survey
}

// present refuses a checkout that is gone, or is no folder any more.
func present(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(CodePathOutside, "", "The checkout is gone: the agent deleted or moved its own folder. Nothing was taken from it.")
	case err != nil:
		return fmt.Errorf("look at the checkout: %w", err)
	case !info.IsDir():
		return refuse(CodePathOutside, "", "The checkout is no folder any more: the agent put a %s in its place.", kindOf(info.Mode()))
	}
	return nil
}

// look walks dir. Refusals that stand whatever is ignored come back as the
// error; the rest are findings, since an ignored folder may hold anything.
func look(ctx context.Context, dir string, limits Limits) (*survey, error) {
	w := &surveyor{root: dir, limits: limits, survey: survey{large: map[string]int64{}}}
	err := w.walk(ctx, "")
	return &w.survey, err
}

func (w *surveyor) walk(ctx context.Context, rel string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(w.root, rel))
	if err != nil {
		w.add(rel, CodeBadMode, "%s cannot be read.", Shown(rel))
		return nil
	}
	if w.seen += len(entries); w.seen > w.limits.Entries {
		return refuse(CodeTooLarge, "", "The checkout holds more than %d files and folders.", w.limits.Entries)
	}
	for _, e := range entries {
		path := e.Name()
		if rel != "" {
			path = rel + "/" + path
		}
		if err := w.entry(ctx, rel, path, e); err != nil {
			return err
		}
	}
	return nil
}

func (w *surveyor) entry(ctx context.Context, rel, path string, e fs.DirEntry) error {
	name := e.Name()
	if name == ".git" {
		if rel != "" {
			w.add(path, CodeGitlink, "%s is a repository of its own inside the checkout. Remove its .git, or leave it out.", Shown(rel))
		}
		return nil // the server never looks into any .git
	}
	if gitName(name) {
		w.add(path, CodeGitInternal, "%s would be taken for git's own folder on some machines.", Shown(path))
		return nil
	}
	mode := e.Type()
	if gitMeta(name) && !mode.IsRegular() && !mode.IsDir() {
		// git opens these by itself: a FIFO would hang it, a link would lead it out.
		return refuse(CodeBadMode, path, "%s is a %s; git reads it, so it must be a plain file.", Shown(path), kindOf(mode))
	}
	switch {
	case mode.IsDir():
		return w.walk(ctx, path)
	case mode.IsRegular():
		return w.file(path, e)
	case mode&fs.ModeSymlink != 0:
		w.files++
	default:
		w.add(path, CodeBadMode, "%s is a %s, which a repository cannot hold. Remove it.", Shown(path), kindOf(mode))
	}
	return nil
}

func (w *surveyor) file(path string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return nil // gone since; git will see the same
	}
	if info.Mode().Perm()&0o400 == 0 && os.Geteuid() != 0 {
		w.add(path, CodeBadMode, "%s cannot be read.", Shown(path))
		return nil
	}
	w.files++
	w.bytes += info.Size()
	if info.Size() > w.limits.FileBytes {
		w.large[path] = info.Size()
	}
	return nil
}

func (w *surveyor) add(path, code, format string, args ...any) {
	if len(w.findings) < 100_000 {
		w.findings = append(w.findings, finding{path, refuse(code, path, format, args...)})
	}
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m.IsDir():
		return "folder"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}

// ignoredSet answers whether a path is left out: itself or below a folder that is.
type ignoredSet map[string]bool

func (s ignoredSet) has(path string) bool {
	if len(s) == 0 {
		return false
	}
	for p := parent(path); p != ""; p = parent(p) {
		if s[path[:len(p)+1]] {
			return true
		}
	}
	return s[path] || s[path+"/"]
}
