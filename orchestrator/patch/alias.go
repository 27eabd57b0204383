package patch

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"gatehouse/orchestrator/spelling"
)

// A path is an alias when some common file system, or a reader, takes it for another
// one: then rules, `protect` and people look at one name and a checkout writes under
// another. Only what a change newly names is judged, folder by folder. A base that has
// odd names, or two names that differ in case, stays workable: what is there may be
// changed and deleted, and files may be added to a folder that is spelled as it is.
//
// Refused as path_alias, without exception for two new files of one change: the reader
// sees two files where a checkout on Windows or macOS holds one, whichever came last.
// The warning case_collision is left for what the base already holds.

// device is a name that Windows keeps for a device, in any case and with any ending.
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])$`)

// short is a name as NTFS and FAT make it for one that is longer (8.3).
var short = regexp.MustCompile(`^[^.]{1,6}~[0-9]{1,6}(\.[^.]{0,3})?$`)

// oddName says why a path component is another name on some file system, "" when it
// is none.
func oddName(name string) string {
	stem, _, _ := strings.Cut(name, ".")
	switch {
	case strings.ContainsRune(name, '\\'):
		return "Windows reads its backslash as a folder"
	case strings.ContainsRune(name, ':'):
		return "Windows reads its colon as a drive or a hidden stream of another file"
	case strings.HasSuffix(name, "."), strings.HasSuffix(name, " "):
		return "Windows drops the dot or blank at its end"
	case device.MatchString(strings.TrimRight(stem, " ")):
		return "Windows keeps the name for a device"
	case short.MatchString(name):
		return "Windows uses such short names for other files"
	case spelling.Skeleton(name) == ".git":
		return "it reads as git's own folder"
	}
	return ""
}

// sameName is what two paths share that are, or read as, one.
func sameName(path string) string { return spelling.Skeleton(path) }

// prefixes calls visit for a path's folders from the top, and for the path itself, until
// it answers false.
func prefixes(path string, visit func(prefix string) bool) {
	for i := 0; i < len(path); i++ {
		if path[i] == '/' && !visit(path[:i]) {
			return
		}
	}
	visit(path)
}

// checkAliases refuses new paths that are another one somewhere.
func (r *Mirror) checkAliases(ctx context.Context, baseTree string, changes []Change) error {
	added := newPaths(changes)
	gone := map[string]bool{}
	for _, c := range changes {
		gone[c.Path] = c.NewMode == modeAbsent
	}
	if len(added) == 0 {
		return nil
	}
	base, err := r.names(ctx, baseTree)
	if err != nil {
		return err
	}
	known := map[string]bool{} // paths and folders of the base, as spelled
	for _, name := range base {
		prefixes(name, func(p string) bool { known[p] = true; return true })
	}
	var odd []string
	why := ""
	for _, path := range added {
		if reason := oddPath(path, known); reason != "" {
			if odd = append(odd, path); why == "" {
				why = reason
			}
		}
	}
	if len(odd) > 0 {
		return refuseAll(CodePathAlias, odd, "%s: %s, so it could become another file than the one that is shown. Give it a plain name.", named(odd), why)
	}
	result := slices.Concat(slices.DeleteFunc(base, func(name string) bool { return gone[name] }), added)
	if twins, other := aliases(added, result, known); len(twins) > 0 {
		return refuseAll(CodePathAlias, twins, "%s: it reads as %s, or is that file on machines that do not tell case, accents or alphabets apart. Use the name that is there, or another one.",
			named(twins), Shown(other))
	}
	return nil
}

// newPaths are the paths that only the result has.
func newPaths(changes []Change) (added []string) {
	for _, c := range changes {
		if c.OldMode == modeAbsent && c.NewMode != modeAbsent {
			added = append(added, c.Path)
		}
	}
	return added
}

// newAliases lists what a change adds and the branch, meanwhile, added under a name that
// reads as the same.
func newAliases(ours, theirs []Change) []string {
	added := newPaths(ours)
	if len(added) == 0 {
		return nil
	}
	twins, _ := aliases(added, slices.Concat(newPaths(theirs), added), nil)
	return twins
}

// oddPath says what is odd about the part of a path that the base does not have.
func oddPath(path string, known map[string]bool) (reason string) {
	prefixes(path, func(p string) bool {
		if !known[p] {
			reason = oddName(p[strings.LastIndexByte(p, '/')+1:])
		}
		return reason == ""
	})
	return reason
}

// aliases lists the added paths of which a new part reads as another path of the result,
// and the first of those others.
func aliases(added, result []string, known map[string]bool) (twins []string, first string) {
	spelled := map[string][]string{} // identity → spellings of the result
	wanted := map[string]bool{}
	for _, path := range added {
		prefixes(path, func(p string) bool {
			wanted[sameName(p)] = wanted[sameName(p)] || !known[p]
			return true
		})
	}
	seen := map[string]bool{}
	for _, path := range result {
		prefixes(path, func(p string) bool {
			if !seen[p] {
				seen[p] = true
				if key := sameName(p); wanted[key] {
					spelled[key] = append(spelled[key], p)
				}
			}
			return true
		})
	}
	for _, path := range added {
		other := ""
		prefixes(path, func(p string) bool {
			if !known[p] {
				for _, q := range spelled[sameName(p)] {
					if q != p {
						other = q
					}
				}
			}
			return other == ""
		})
		if other != "" {
			if twins = append(twins, path); first == "" {
				first = other
			}
		}
	}
	return twins, first
}
