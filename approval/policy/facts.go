package policy

import (
	"slices"

	"gatehouse/orchestrator/patch"
)

// Facts is what a rule's expression may look at. The names are those of the tags:
//
//	any(patch.files, .path startsWith "core/") && patch.lines > 20
//	any(patch.files, .status == "removed") || "vendor/go.mod" in patch.paths
//	len(unseen) > 0 && any(patch.files, .old_path startsWith "docs/")
//	"ci_file" in warnings || hour < 7 || weekday in ["saturday", "sunday"]
//	agent == "coder" && "kik" in chain && all(checks, .ok)
type Facts struct {
	Patch      PatchFacts   `expr:"patch"`
	Unseen     []string     `expr:"unseen"`     // paths with content that was moved or copied there, and that no person approved there before
	Warnings   []string     `expr:"warnings"`   // codes, one per kind
	Notes      []string     `expr:"notes"`      // codes, one per kind
	Agent      string       `expr:"agent"`      // whose patch it is
	Chain      []string     `expr:"chain"`      // agents from the root to this one
	Requester  string       `expr:"requester"`  // name of the person who asked
	Repository string       `expr:"repository"` // configured name
	Branch     string       `expr:"branch"`     // where it would land
	Checks     []CheckFacts `expr:"checks"`
	Hour       int          `expr:"hour"`      // 0 to 23, in server.timezone
	Weekday    string       `expr:"weekday"`   // monday to sunday
	Depth      int          `expr:"depth"`     // 0 at the root
	Agents     []string     `expr:"agents"`    // all that worked on the tree; see Policy.Strictest
	Owners     []string     `expr:"owners"`    // names of the people who own one of them
	Sandboxes  []string     `expr:"sandboxes"` // what confined them; "none" where one had none
}

// PatchFacts is the patch; lines is added plus removed. Everything in it is as if nothing
// had been moved or copied: a file that was renamed is two of its files, with all lines.
type PatchFacts struct {
	Files   []FileFacts `expr:"files"`
	Paths   []string    `expr:"paths"` // every path that differs, in any way; sorted
	Lines   int         `expr:"lines"`
	Added   int         `expr:"added"`
	Removed int         `expr:"removed"`
}

// FileFacts is one path that differs.
type FileFacts struct {
	Path    string `expr:"path"`
	OldPath string `expr:"old_path"` // where the content of a renamed or copied one was, else ""
	Status  string `expr:"status"`   // one of statuses
	Added   int    `expr:"added"`
	Removed int    `expr:"removed"`
	Mode    string `expr:"mode"`     // the new mode, e.g. 100644; "" of a removed file
	OldMode string `expr:"old_mode"` // "" of an added one
	Binary  bool   `expr:"binary"`
}

// statuses are the words that a rule may compare .status with. A file that was moved is
// removed where it was and renamed where it is now.
func statuses() []string {
	return []string{string(patch.Added), string(patch.Modified), string(patch.Removed), string(patch.Renamed), string(patch.Copied)}
}

type CheckFacts struct {
	Command string `expr:"command"`
	OK      bool   `expr:"ok"`
}

// Careful reports whether there is a warning or a failed check.
func (f Facts) Careful() bool {
	return len(f.Warnings) > 0 || slices.ContainsFunc(f.Checks, func(c CheckFacts) bool { return !c.OK })
}

// unread says what keeps a rule with need 0 from passing a patch: what nobody would have
// read in full, or what is not there to be read any more; "" for nothing.
func (f Facts) unread() string {
	if len(f.Unseen) > 0 {
		return "that brings content to a place where no person has approved it"
	}
	for _, x := range f.Patch.Files {
		switch patch.Status(x.Status) {
		case patch.Renamed:
			return "that moves a file"
		case patch.Copied:
			return "that copies a file"
		}
	}
	for _, x := range f.Patch.Files {
		if patch.Status(x.Status) == patch.Removed {
			return "that removes a file"
		}
	}
	return ""
}

// PatchFactsOf are what rules see of a patch's files, of which git counts so many lines.
func PatchFactsOf(files []patch.File, added, removed int) PatchFacts {
	p := PatchFacts{Files: []FileFacts{}, Paths: []string{}, Added: added, Removed: removed}
	for _, x := range files {
		added, removed := x.Whole()
		p.Added, p.Removed = p.Added+added-x.Added, p.Removed+removed-x.Removed
	}
	p.Lines = p.Added + p.Removed
	for _, t := range patch.Touches(files) {
		p.Files = append(p.Files, FileFacts{Path: t.Path, OldPath: t.OldPath, Status: string(t.Status),
			Added: t.Added, Removed: t.Removed, Mode: t.NewMode, OldMode: t.OldMode, Binary: t.Binary})
		p.Paths = append(p.Paths, t.Path)
	}
	p.Paths = slices.Compact(p.Paths)
	return p
}
