package patch

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// FileEdit is what one file is to be after an edit: Text, byte by byte, or gone.
type FileEdit struct {
	Path   string `json:"path"`
	Text   string `json:"text"`
	Delete bool   `json:"delete,omitempty"`
}

// MaxEdits bounds how many files one edit may name; a patch has no such limit.
const MaxEdits = 500

// EditFiles is the tree in which some files have another text. A file keeps its mode;
// a new one is plain. Only text can be edited: what would lose bytes by it, or is no
// file, is a *Refusal. What the result may hold is Validate's business.
func (r *Mirror) EditFiles(ctx context.Context, tree string, edits []FileEdit) (string, error) {
	if err := r.ensure(ctx); err != nil {
		return "", err
	}
	if len(edits) > MaxEdits {
		return "", refuse(CodeTooLarge, "", "The edit names %d files; %d is the limit. Send a patch.", len(edits), MaxEdits)
	}
	var changes []Change
	seen := map[string]bool{}
	for _, e := range edits {
		if bad := checkPath(e.Path); bad != nil {
			return "", bad
		}
		if seen[e.Path] {
			return "", refuse(CodeDuplicateFile, e.Path, "%s is edited twice.", Shown(e.Path))
		}
		seen[e.Path] = true
		c, err := r.editOne(ctx, tree, e)
		if err != nil {
			return "", err
		}
		changes = append(changes, c)
	}
	if err := r.roomFor(ctx, tree, changes); err != nil {
		return "", err
	}
	return r.edit(ctx, tree, changes)
}

// editOne writes the new content of one file.
func (r *Mirror) editOne(ctx context.Context, tree string, e FileEdit) (Change, error) {
	old, err := r.lookup(ctx, tree, e.Path)
	if err != nil {
		return Change{}, err
	}
	c := Change{Path: e.Path, OldMode: old.mode, OldID: old.id, NewMode: modeAbsent, NewID: strings.Repeat("0", len(tree))}
	switch {
	case old.mode == "" && e.Delete:
		return c, refuse(CodeContextMismatch, e.Path, "%s is not there, so it cannot be deleted.", Shown(e.Path))
	case e.Delete && old.mode != modeTree && old.mode != modeGit:
		return c, nil
	case old.mode == modeGit:
		return c, refuse(CodeGitlink, e.Path, "%s is a submodule, which cannot be changed here.", Shown(e.Path))
	case old.mode == modeTree:
		return c, refuse(CodeContextMismatch, e.Path, "%s is a folder. Name the files in it.", Shown(e.Path))
	case old.mode == modeLink:
		return c, refuse(CodeSymlink, e.Path, "%s is a link, which has no text to edit. Send a patch.", Shown(e.Path))
	case int64(len(e.Text)) > r.home.opts.Limits.FileBytes:
		return c, refuse(CodeTooLarge, e.Path, "%s would be %d bytes long; %d is the limit.", Shown(e.Path), len(e.Text), r.home.opts.Limits.FileBytes)
	case !isText([]byte(e.Text)):
		return c, refuse(CodeMalformed, e.Path, "The new content of %s is no text.", Shown(e.Path))
	}
	c.NewMode = old.mode
	if old.mode == "" {
		c.NewMode = modeFile
	} else if err := r.editable(ctx, e.Path, old.id); err != nil {
		return c, err
	}
	out, err := r.git(ctx, command{args: []string{"hash-object", "-w", "--no-filters", "--stdin"}, stdin: strings.NewReader(e.Text)})
	c.NewID = string(bytes.TrimSpace(out))
	return c, err
}

// editable refuses files whose bytes would not survive an editor.
func (r *Mirror) editable(ctx context.Context, path, id string) error {
	content, err := r.Blob(ctx, id, r.home.opts.Limits.FileBytes)
	if err != nil && err != ErrCut {
		return err
	}
	if err == ErrCut || !isText(content) {
		return refuse(CodeMalformed, path, "%s is binary, not UTF-8, or too large, so it cannot be edited as text. Send a patch, or request changes.", Shown(path))
	}
	return nil
}

// isText reports whether content is what an editor gives back as it was.
func isText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }

// roomFor refuses a new file where a folder stands, or one below a file, unless that
// is deleted by the same edit.
func (r *Mirror) roomFor(ctx context.Context, tree string, changes []Change) error {
	gone := map[string]bool{}
	for _, c := range changes {
		gone[c.Path] = c.NewMode == modeAbsent
	}
	for i, c := range changes {
		if c.OldMode != "" || c.NewMode == modeAbsent {
			continue
		}
		for p := parent(c.Path); p != ""; p = parent(p) {
			up, err := r.lookup(ctx, tree, p)
			if err != nil {
				return err
			}
			added := false
			for j := range changes {
				added = added || j != i && changes[j].Path == p && changes[j].NewMode != modeAbsent
			}
			if added || up.mode != "" && up.mode != modeTree && !gone[p] {
				return refuse(CodeContextMismatch, c.Path, "%s is a file, so nothing can stand below it.", Shown(p))
			}
		}
	}
	return nil
}

// modeTree is a folder's mode in a tree.
const modeTree = "040000"

// lookup finds one path in a tree; the zero entry is an absent one.
func (r *Mirror) lookup(ctx context.Context, tree, path string) (entry, error) {
	if err := checkIDs(tree); err != nil {
		return entry{}, err
	}
	there, err := r.list(ctx, tree, []string{path})
	if err != nil || len(there) != 1 || there[0].path != path {
		return entry{}, err
	}
	return there[0].entry, nil
}

// File returns the content of a plain file of a tree and whether there is one. One
// that is larger than max bytes is cut there and comes with ErrCut.
func (r *Mirror) File(ctx context.Context, tree, path string, max int64) ([]byte, bool, error) {
	if bad := checkPath(path); bad != nil {
		return nil, false, nil
	}
	e, err := r.lookup(ctx, tree, path)
	if err != nil || !plainMode(e.mode) && e.mode != modeLink {
		return nil, false, err
	}
	content, err := r.Blob(ctx, e.id, max)
	return content, true, err
}

// Select is the tree in which only some paths of a patch (base → tree) are changed:
// the base with the chosen entries of tree in their place. A rename is chosen by both
// of its paths. A path that the patch does not change, or that cannot be taken
// without another one, is a *Refusal that names it.
func (r *Mirror) Select(ctx context.Context, base, tree string, paths []string) (string, error) {
	if err := r.ensure(ctx); err != nil {
		return "", err
	}
	changes, err := r.Changes(ctx, base, tree)
	if err != nil {
		return "", err
	}
	wanted := map[string]bool{}
	for _, p := range paths {
		wanted[p] = true
	}
	var chosen, left []Change
	for _, c := range changes {
		if wanted[c.Path] {
			chosen = append(chosen, c)
		} else {
			left = append(left, c)
		}
		delete(wanted, c.Path)
	}
	for _, p := range sortedKeys(wanted) {
		return "", refuse(CodeContextMismatch, p, "%s is not among the changed files.", Shown(p))
	}
	if err := separable(chosen, left); err != nil {
		return "", err
	}
	if len(chosen) == 0 {
		return base, nil
	}
	return r.edit(ctx, base, chosen)
}

// separable refuses a choice in which a file would stand where the base still has a
// folder, or the other way round: what gives way must be chosen, too.
func separable(chosen, left []Change) error {
	stays := map[string]bool{} // files of the base whose removal was not chosen
	for _, c := range left {
		if c.NewMode == modeAbsent {
			stays[c.Path] = true
		}
	}
	for _, c := range chosen {
		if c.NewMode == modeAbsent {
			continue
		}
		other := ""
		for p := parent(c.Path); p != "" && other == ""; p = parent(p) {
			if stays[p] {
				other = p
			}
		}
		if i := slices.IndexFunc(left, func(l Change) bool { return stays[l.Path] && strings.HasPrefix(l.Path, c.Path+"/") }); i >= 0 {
			other = left[i].Path
		}
		if other != "" {
			return refuse(CodeContextMismatch, c.Path, "%s takes the place of %s, so neither can be chosen without the other.", Shown(c.Path), Shown(other))
		}
	}
	return nil
}
