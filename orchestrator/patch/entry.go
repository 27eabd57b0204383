package patch

import (
	"context"
	"strings"
)

// Entry is what stands at a path of a tree.
type Entry string

// The kinds of entries.
const (
	NoEntry    Entry = ""           // nothing stands there
	Plain      Entry = "file"       // a file that cannot be started
	Executable Entry = "executable" // a file with the executable bit
	Link       Entry = "link"       // a symbolic link
	Folder     Entry = "folder"     // a folder, or a submodule
)

// EntryAt looks at a clean, slash-separated path of a tree, such as scripts/run.sh.
func (r *Mirror) EntryAt(ctx context.Context, tree, path string) (Entry, error) {
	if err := checkIDs(tree); err != nil {
		return NoEntry, err
	}
	out, err := r.git(ctx, command{args: []string{"ls-tree", "-z", "--full-tree", tree, "--", path}})
	if err != nil {
		return NoEntry, r.missing(err)
	}
	mode, _, _ := strings.Cut(string(out), " ")
	switch {
	case mode == "":
		return NoEntry, nil
	case mode == modeExec:
		return Executable, nil
	case mode == modeLink:
		return Link, nil
	case strings.HasPrefix(mode, "100"): // old repositories have 100664, too
		return Plain, nil
	}
	return Folder, nil
}
