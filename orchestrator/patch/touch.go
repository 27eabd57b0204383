package patch

import (
	"cmp"
	"context"
	"slices"
)

// Removed is what rules see at a path that a file left, whether it was deleted or moved.
const Removed Status = "removed"

// Touch is one path that a patch makes differ, as rules see it: Added, Modified (also the
// mode alone, or another kind of entry), Removed, Renamed or Copied.
type Touch struct {
	Path    string
	OldPath string // where the content of a Renamed or Copied path was, else ""
	Status  Status
	Added   int // lines, counted as if nothing had been moved or copied
	Removed int
	OldMode string // six digits; "" when absent
	NewMode string
	Binary  bool
}

// Touches are all the paths that files make differ, by path. Files of a review show a
// rename as one, for reading; here it is two paths: the one that the file left, and the
// one where it is now.
func Touches(files []File) []Touch {
	all := make([]Touch, 0, len(files))
	for _, f := range files {
		added, removed := f.Whole()
		t := Touch{Path: f.Path, OldPath: f.From(), Status: Modified, Added: added, Removed: removed, OldMode: f.OldMode, NewMode: f.NewMode, Binary: f.Binary}
		switch {
		case f.Status == Deleted:
			t.Status = Removed
		case f.Status == Renamed && f.OldPath != "":
			all = append(all, Touch{Path: f.OldPath, Status: Removed, Removed: removed, OldMode: f.OldMode, Binary: f.Binary})
			t.Status, t.Removed = Renamed, 0
		case t.OldPath != "":
			t.Status = Copied
		case f.Status == Added:
			t.Status = Added
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Touch) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// From is the path that the content of a moved or copied file comes from, else "".
func (f File) From() string {
	if f.CopyOf != "" {
		return f.CopyOf
	}
	if f.Status == Renamed || f.Status == Copied {
		return f.OldPath
	}
	return ""
}

// Whole counts the lines of a file as if nothing had been moved or copied: all of a moved
// file's are removed where it was and added where it is. Files of before that was counted
// have what differs.
func (f File) Whole() (added, removed int) {
	if f.WholeAdded == 0 && f.WholeRemoved == 0 {
		return f.Added, f.Removed
	}
	return f.WholeAdded, f.WholeRemoved
}

// Empty reports whether the file has no bytes: git's names for that are fixed.
func (f File) Empty() bool {
	return f.NewBlob == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391" || f.NewBlob == "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
}

// shown lists the changed files as people read them: plain is the list without renames
// and copies, which are looked for where there can be any.
func (r *Mirror) shown(ctx context.Context, baseTree, tree string, plain []File) ([]File, error) {
	isNew := func(f File) bool { return f.Status == Added }
	known := func(f File) bool { return f.Status != Added }
	if !slices.ContainsFunc(plain, isNew) || !slices.ContainsFunc(plain, known) {
		return plain, nil
	}
	files, err := r.stat(ctx, baseTree, tree, withRenames)
	if err != nil {
		return nil, err
	}
	at := make(map[string]File, len(plain))
	for _, f := range plain {
		at[f.Path] = f
	}
	for i := range files {
		f := &files[i]
		if f.From() == "" {
			continue
		}
		f.WholeAdded = at[f.Path].Added
		if f.Status == Renamed {
			f.WholeRemoved = at[f.OldPath].Removed
		}
	}
	return files, nil
}

// twins notes of added files which file of the base had the very same content: git looks
// for the origin of a copy among changed files only. An empty file is nobody's copy.
func (r *Mirror) twins(ctx context.Context, baseTree string, files []File) error {
	added := map[string][]int{} // blob → where in files
	for i, f := range files {
		if f.Status == Added && !f.Empty() && plainMode(f.NewMode) {
			added[f.NewBlob] = append(added[f.NewBlob], i)
		}
	}
	if len(added) == 0 {
		return nil
	}
	base, err := r.list(ctx, baseTree, nil)
	for _, l := range base { // by path, so the first one is taken
		for _, i := range added[l.id] {
			if files[i].CopyOf == "" && plainMode(l.mode) {
				files[i].CopyOf = l.path
			}
		}
	}
	return err
}

func plainMode(mode string) bool { return mode == modeFile || mode == modeExec }
