package llm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"

	"gatehouse/orchestrator/agent"
)

// files is the checkout as the file tools see it: nothing outside of it, nothing of
// git's own, and no way through a symbolic link. The names come from a model.
type files struct{ root *os.Root }

// openFiles opens the checkout for one call.
func (c *conversation) openFiles() (files, error) {
	if c.job.Dir == "" {
		return files{}, agent.Fail("not_found", "There is no checkout: all files are below %s.", attachmentsPrefix)
	}
	root, err := os.OpenRoot(c.job.Dir)
	if err != nil {
		return files{}, fmt.Errorf("open the checkout: %w", err)
	}
	return files{root}, nil
}

// attachmentsPrefix begins the paths under which a model reads the files that came with the
// task. They win over files of the checkout with the same path.
const attachmentsPrefix = "attachments/"

// attachment is the content of a file that came with the task; ours is false for every other
// path. Only names of the task's own list are opened.
func (c *conversation) attachment(name string) (content []byte, ours bool, err error) {
	named, under := strings.CutPrefix(path.Clean("./"+name), attachmentsPrefix)
	if !under || c.job.AttachmentsDir == "" {
		return nil, false, nil
	}
	for _, a := range c.job.Attachments {
		if a.Name != named {
			continue
		}
		if a.Size > maxRead {
			return nil, true, agent.Fail("too_large", "%s has %d bytes; %d is the limit.", name, a.Size, maxRead)
		}
		root, err := os.OpenRoot(c.job.AttachmentsDir)
		if err != nil {
			return nil, true, fmt.Errorf("open the attachments: %w", err)
		}
		defer root.Close() //nolint:errcheck // nothing was written
		content, err := root.ReadFile(a.Name)
		if err != nil {
			return nil, true, fmt.Errorf("read an attachment: %w", err)
		}
		return content, true, nil
	}
	return nil, false, nil
}

// place turns what a model calls a path into one of the checkout, or says why it is none.
func (f files) place(name string) (string, *agent.Failure) {
	bad := func(format string, args ...any) (string, *agent.Failure) {
		return "", agent.Fail("path_outside", format, args...)
	}
	switch {
	case len(name) > 1024:
		return bad("The path has %d bytes; 1024 is the limit.", len(name))
	case strings.ContainsFunc(name, unicode.IsControl):
		return bad("The path %q has a control character.", name)
	case path.IsAbs(name):
		return bad("%s is absolute. Paths are relative to the root of the checkout.", name)
	}
	clean := path.Clean("./" + name)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return bad("%s leads out of the checkout.", name)
	}
	at := ""
	for part := range strings.SplitSeq(clean, "/") {
		if gitsOwn(part) {
			return "", agent.Fail("git_internal", "%s belongs to git and is not yours to use.", name)
		}
		at = path.Join(at, part)
		info, err := f.root.Lstat(at)
		if err != nil {
			break // it is not there yet, or cannot be seen: the caller finds out
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return "", agent.Fail("symlink", "%s is a symbolic link. Use the path that it leads to.", at)
		}
	}
	return clean, nil
}

// gitsOwn reports whether a part of a path is .git for any file system: in any case, with
// endings that Windows drops, or under its short name.
func gitsOwn(part string) bool {
	name := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1 // characters that HFS+ ignores
		}
		return unicode.ToLower(r)
	}, part)
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return name == ".git" || name == "git~1"
}

// regular opens nothing but files: a pipe would block, a device would never end.
func (f files) regular(name string) (fs.FileInfo, *agent.Failure) {
	info, err := f.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, agent.Fail("not_found", "There is no %s. %s shows what there is.", name, listFilesTool)
	case err != nil:
		return nil, agent.Fail("not_readable", "%s cannot be looked at: %v.", name, cause(err))
	case info.IsDir():
		return nil, agent.Fail("is_folder", "%s is a folder. %s shows what is in it.", name, listFilesTool)
	case !info.Mode().IsRegular():
		return nil, agent.Fail("bad_mode", "%s is no ordinary file.", name)
	}
	return info, nil
}

// cause is an error without the place on this machine.
func cause(err error) error {
	if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
		return wrapped.Err
	}
	return err
}

// binary reports whether content is no text.
func binary(content []byte) bool {
	return strings.ContainsRune(string(content[:min(len(content), 8000)]), 0)
}
