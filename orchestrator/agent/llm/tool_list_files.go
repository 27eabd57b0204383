package llm

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gatehouse/orchestrator/agent"
)

// maxListed is how many entries one call shows.
const maxListed = 1000

func (c *conversation) listFiles() tool {
	type input struct {
		Path      string `json:"path"`
		Recursive bool   `json:"recursive"`
	}
	return tool{Tool: describe(listFilesTool, `"path":{"type":"string","description":"A folder; the root when absent"},"recursive":{"type":"boolean"}`),
		run: typed(func(ctx context.Context, in input) (answer, error) {
			var b strings.Builder
			n := 0
			err := c.walk(ctx, in.Path, func(name string, d fs.DirEntry) error {
				if n++; n > maxListed {
					return fs.SkipAll
				}
				b.WriteString(entryLine(name, d))
				if d.IsDir() && !in.Recursive {
					return fs.SkipDir
				}
				return nil
			})
			switch {
			case err != nil:
				return answer{}, err
			case n == 0:
				return answer{Text: "The folder is empty."}, nil
			case n > maxListed:
				fmt.Fprintf(&b, "(only the first %d are shown; name a folder)", maxListed)
			}
			return answer{Text: b.String()}, nil
		})}
}

// entryLine is one entry of a list. Control characters in names are shown as such.
func entryLine(name string, d fs.DirEntry) string {
	if shown := fmt.Sprintf("%q", name); len(shown) != len(name)+2 {
		name = shown
	}
	info, err := d.Info()
	switch {
	case d.IsDir():
		return name + "/\n"
	case err != nil:
		return name + "\n"
	case d.Type()&fs.ModeSymlink != 0:
		return name + " (symbolic link)\n"
	}
	return fmt.Sprintf("%s %d\n", name, info.Size())
}

// walk visits all below a folder, or one file, in the order of names: of the checkout, and of
// the files that came with the task.
func (c *conversation) walk(ctx context.Context, name string, visit func(name string, d fs.DirEntry) error) error {
	at, folder := path.Clean("./"+name), strings.TrimSuffix(attachmentsPrefix, "/")
	if c.job.AttachmentsDir == "" || at != "." && at != folder && !strings.HasPrefix(at, attachmentsPrefix) {
		return c.walkCheckout(ctx, name, visit)
	}
	full := false // the visitor has had enough
	err := fs.WalkDir(os.DirFS(c.job.AttachmentsDir), ".", func(name string, d fs.DirEntry, err error) error {
		name = path.Join(folder, name)
		if err != nil || name == folder && at != "." || at != "." && at != folder && at != name {
			return err
		}
		found := visit(name, d)
		full = full || found == fs.SkipAll
		return found
	})
	if _, ours, _ := c.attachment(at); err != nil || full || ours || c.job.Dir == "" {
		return err
	}
	if _, err := os.Lstat(filepath.Join(c.job.Dir, folder)); err != nil && at == folder {
		return nil // the checkout has no such folder
	}
	return c.walkCheckout(ctx, name, visit)
}

// walkCheckout visits what is in the checkout. It leaves out what is git's and does not follow
// links.
func (c *conversation) walkCheckout(ctx context.Context, name string, visit func(name string, d fs.DirEntry) error) error {
	f, err := c.openFiles()
	if err != nil {
		return err
	}
	defer f.root.Close() //nolint:errcheck // nothing was written
	at, failed := f.place(name)
	if failed != nil {
		return failed
	}
	err = fs.WalkDir(f.root.FS(), at, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == at:
			return agent.Fail("not_found", "There is no %s, or it cannot be read.", at)
		case err != nil:
			return nil // one folder that cannot be read does not hide the others
		case gitsOwn(path.Base(name)):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case name == at && d.IsDir():
			return nil
		}
		return visit(name, d)
	})
	return err
}
