package patch

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Program is a relative path in the command of an agent, which starts in a checkout.
type Program struct {
	Path string
	Need Need
}

// Need says when a Program counts as one.
type Need string

// The needs of a program.
const (
	Always       Need = "always"     // it is what is started
	WhereFile    Need = "file"       // where there is such a file: what an interpreter is given
	WhereStarted Need = "executable" // where there is such a file and it may be executed
)

// Steered is what becomes of a caller's tree before another agent works in it.
type Steered struct {
	Tree    string   // the caller's, with everything that steers programs as on the branch
	Changed []string // paths in which Tree differs from the caller's
	Missing []string // programs that the branch does not have, and so nobody has approved
}

// Steer takes from the branch what steers programs: configuration of agents, what editors,
// shells and package managers run by themselves, git's hooks, and the programs that the
// next agent is started with. A link of the branch at such a place is followed within the
// branch, and what it leads to is taken from there, too. All else is the caller's.
func (r *Mirror) Steer(ctx context.Context, branch, tree string, programs []Program) (Steered, error) {
	s := Steered{Tree: tree}
	changes, err := r.Changes(ctx, branch, tree)
	if err != nil || len(changes) == 0 {
		return s, err // what is as on the branch needs no look
	}
	h := &helm{r: r, branch: branch, tree: tree, held: map[string]bool{}}
	for _, p := range programs {
		there, err := h.program(ctx, p)
		if err != nil {
			return s, err
		}
		if !there {
			s.Missing = append(s.Missing, p.Path)
		}
	}
	if err := h.links(ctx); err != nil {
		return s, err
	}
	var back []Change
	for _, c := range changes {
		if h.holds(c) {
			back = append(back, Change{Path: c.Path, NewMode: c.OldMode, NewID: c.OldID})
		}
	}
	if len(back) == 0 {
		return s, nil
	}
	if s.Tree, err = r.edit(ctx, tree, back, "--replace"); err != nil {
		return s, fmt.Errorf("take what steers programs from the branch: %w", err)
	}
	differs, err := r.Changes(ctx, s.Tree, tree)
	for _, c := range differs {
		s.Changed = append(s.Changed, c.Path)
	}
	return s, err
}

// helm knows which paths steer programs.
type helm struct {
	r      *Mirror
	branch string
	tree   string
	held   map[string]bool // folded paths of files and folders that are the branch's
}

// Bounds of links that are followed.
const (
	maxHops  = 40   // of one path, as Linux has it
	maxLinks = 1000 // of a branch
)

// program holds what a program is on the branch. It reports false for one that is not
// there although it counts as one.
func (h *helm) program(ctx context.Context, p Program) (bool, error) {
	name := path.Clean(p.Path)
	if path.IsAbs(name) || name == "." || name == ".." || strings.HasPrefix(name, "../") {
		return true, nil // it is none of the checkout's
	}
	found, mode, err := h.follow(ctx, h.branch, name)
	if err != nil {
		return false, err
	}
	if mode == "" { // not on the branch: the caller may have made it
		_, mode, err = h.follow(ctx, h.tree, name)
		return p.Need == WhereStarted && !started(mode) || p.Need == WhereFile && mode == "", err
	}
	if p.Need == WhereStarted && !started(mode) {
		if _, now, err := h.follow(ctx, h.tree, name); err != nil || !started(now) {
			return true, err
		}
	}
	h.hold(found)
	return true, nil
}

// started reports whether what has the mode may be executed, as far as the tree knows.
func started(mode string) bool { return mode == modeExec || mode == outside }

func (h *helm) hold(paths []string) {
	for _, p := range paths {
		if p != "" {
			h.held[foldName(p)] = true
		}
	}
}

// outside is the mode of what a link leads to that is no part of the tree.
const outside = "outside"

// follow walks a path through a tree as a kernel would. It returns the links on the way
// and what stands at the end, with its mode; "" where there is nothing.
func (h *helm) follow(ctx context.Context, tree, name string) (found []string, mode string, err error) {
	rest, at := strings.Split(name, "/"), ""
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && at == "":
			return found, outside, nil
		case part == "..":
			if at = path.Dir(at); at == "." {
				at = ""
			}
			continue
		}
		next := path.Join(at, part)
		e, err := h.r.lookup(ctx, tree, next)
		if err != nil || e.mode == "" {
			return found, "", err
		}
		if e.mode != modeLink {
			at = next
			if len(rest) == 0 {
				return append(found, next), e.mode, nil
			}
			continue
		}
		found = append(found, next)
		target, err := h.r.Blob(ctx, e.id, maxTarget)
		if err != nil {
			return found, "", err
		}
		if hops++; hops > maxHops || path.IsAbs(string(target)) {
			return found, outside, nil
		}
		rest = append(strings.Split(string(target), "/"), rest...)
	}
	return append(found, at), modeTree, nil
}

// links holds what the branch's own links at steering places lead to.
func (h *helm) links(ctx context.Context) error {
	all, err := h.r.list(ctx, h.branch, nil)
	if err != nil {
		return err
	}
	n := 0
	for _, l := range all {
		if l.mode != modeLink || !Steers(l.path) && !leadsIn(l.path) {
			continue
		}
		if n++; n > maxLinks {
			return fmt.Errorf("the branch has over %d links among the files that steer programs", maxLinks)
		}
		found, _, err := h.follow(ctx, h.branch, l.path)
		if err != nil {
			return err
		}
		h.hold(found)
	}
	return nil
}

// holds reports whether a path that the caller changed is the branch's.
func (h *helm) holds(c Change) bool {
	if Steers(c.Path) || (c.NewMode == modeLink || c.OldMode == modeLink) && leadsIn(c.Path) {
		return true
	}
	name := foldName(c.Path)
	for held := range h.held {
		if name == held || strings.HasPrefix(name, held+"/") {
			return true
		}
		if strings.HasPrefix(held, name+"/") { // a file or link in place of a folder above
			return true
		}
	}
	return false
}

// Steers reports whether a file of that name steers programs that come upon it: agents,
// editors, shells, package managers, git.
func Steers(name string) bool {
	return agentFiles.match(name) || autorunFiles.match(name) || gitHook(name)
}

// gitHooks are the names under which git runs a file of the folder that holds its hooks.
var gitHooks = set("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
	"pre-rebase", "post-checkout", "post-merge", "pre-push", "post-rewrite", "pre-auto-gc", "reference-transaction", "sendemail-validate", "fsmonitor-watchman")

// gitHook reports whether a file would run as one of git's hooks where core.hooksPath
// names its folder. Folders called hooks hold other things in many repositories.
func gitHook(name string) bool {
	folder, base := path.Split(strings.ToLower(name))
	folder = path.Base(folder)
	return gitHooks[base] && (folder == "hooks" || folder == "git-hooks")
}

// leadsIn reports whether a link of that name would stand above a folder that steers
// programs: .github in place of .github/instructions.
func leadsIn(name string) bool {
	name = "/" + strings.ToLower(name)
	return slices.ContainsFunc(slices.Concat(agentFiles.folders, autorunFiles.folders), func(f string) bool {
		above, _, deep := strings.Cut(f, "/")
		return deep && strings.HasSuffix(name, "/"+above)
	})
}
