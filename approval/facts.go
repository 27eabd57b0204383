package approval

import (
	"strings"
	"time"
)

// Facts is what a rule's expression may look at. The names are those of the tags:
//
//	any(patch.files, .path startsWith "core/") && patch.lines > 20
//	"ci_file" in warnings || hour < 7 || weekday in ["saturday", "sunday"]
//	agent == "coder" && "kik" in chain && all(checks, .ok)
type Facts struct {
	Patch      PatchFacts   `expr:"patch"`
	Warnings   []string     `expr:"warnings"`   // codes, one per kind
	Notes      []string     `expr:"notes"`      // codes, one per kind
	Agent      string       `expr:"agent"`      // whose patch it is
	Chain      []string     `expr:"chain"`      // agents from the root to this one
	Requester  string       `expr:"requester"`  // name of the person who asked
	Repository string       `expr:"repository"` // configured name
	Branch     string       `expr:"branch"`     // where it would land
	Checks     []CheckFacts `expr:"checks"`
	Hour       int          `expr:"hour"`    // 0 to 23, in server.timezone
	Weekday    string       `expr:"weekday"` // monday to sunday
	Depth      int          `expr:"depth"`   // 0 at the root
}

// PatchFacts is the patch; lines is added plus removed.
type PatchFacts struct {
	Files   []FileFacts `expr:"files"`
	Lines   int         `expr:"lines"`
	Added   int         `expr:"added"`
	Removed int         `expr:"removed"`
}

// FileFacts is one changed file.
type FileFacts struct {
	Path    string `expr:"path"`
	OldPath string `expr:"old_path"` // of a rename, else ""
	Status  string `expr:"status"`   // added, modified, deleted, renamed …
	Added   int    `expr:"added"`
	Removed int    `expr:"removed"`
	Mode    string `expr:"mode"`     // the new mode, e.g. 100644; "" of a deleted file
	OldMode string `expr:"old_mode"` // "" of an added one
	Binary  bool   `expr:"binary"`
}

// CheckFacts is the result of one check.
type CheckFacts struct {
	Command string `expr:"command"`
	OK      bool   `expr:"ok"`
}

// Careful reports whether there is a warning or a failed check.
func (f Facts) Careful() bool {
	if len(f.Warnings) > 0 {
		return true
	}
	for _, c := range f.Checks {
		if !c.OK {
			return true
		}
	}
	return false
}

// factsOf collects the facts of the current revision of r, asked at the given local
// time. They come from what is stored, so that a rule tried on a past request sees what
// it would have seen.
func factsOf(r *Request, at time.Time) Facts {
	v := r.Revision
	chain := strings.Split(r.Chain, " → ")
	f := Facts{
		Patch:    patchFacts(v),
		Warnings: warningCodes(v), Notes: []string{}, Checks: []CheckFacts{},
		Agent: r.Agent, Chain: chain, Requester: r.Requester, Repository: r.Repository, Branch: v.Base.Branch,
		Hour: at.Hour(), Weekday: strings.ToLower(at.Weekday().String()), Depth: len(chain) - 1,
	}
	for _, n := range v.Notes {
		f.Notes = appendOnce(f.Notes, n.Code)
	}
	for _, c := range v.Checks {
		f.Checks = append(f.Checks, CheckFacts{Command: c.Command, OK: c.OK})
	}
	return f
}

// patchFacts are what rules see of a revision's files: of a patch, or of what travels with
// a hand-over.
func patchFacts(v Revision) PatchFacts {
	p := PatchFacts{Files: []FileFacts{}, Lines: v.Added + v.Removed, Added: v.Added, Removed: v.Removed}
	for _, x := range v.Files {
		p.Files = append(p.Files, FileFacts{Path: x.Path, OldPath: x.OldPath, Status: string(x.Status),
			Added: x.Added, Removed: x.Removed, Mode: x.NewMode, OldMode: x.OldMode, Binary: x.Binary})
	}
	return p
}

func appendOnce(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}
