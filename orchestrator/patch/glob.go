package patch

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gatehouse/orchestrator/spelling"
)

// glob is a pattern over paths of a repository, read as a .gitignore line is:
// "**" stands for any folders, "*" and "?" stop at "/", a pattern without an
// inner slash matches a name at any depth, and what matches a folder matches
// all below it.
type glob []string

// CheckGlob reports what is wrong with a pattern; configuration asks it at start.
func CheckGlob(pattern string) error {
	_, err := parseGlob(pattern)
	return err
}

func parseGlob(pattern string) (glob, error) {
	p := strings.Trim(pattern, "/")
	if p == "" {
		return nil, fmt.Errorf("the pattern %q is empty", pattern)
	}
	parts := strings.Split(p, "/")
	for _, part := range parts {
		if _, err := path.Match(part, "x"); err != nil || part == "" || part == "." || part == ".." {
			return nil, fmt.Errorf("the pattern %q cannot be read", pattern)
		}
	}
	if len(parts) == 1 && !strings.HasPrefix(pattern, "/") && parts[0] != "**" {
		parts = append([]string{"**"}, parts...)
	}
	return parts, nil
}

func (g glob) match(name string) bool { return matchParts(g, strings.Split(name, "/")) }

func matchParts(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for len(pattern) > 0 && pattern[0] == "**" {
				pattern = pattern[1:]
			}
			if len(pattern) == 0 {
				return len(name) > 0
			}
			for i := range name {
				if matchParts(pattern, name[i:]) {
					return true
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return true // the rest of name lies below what matched
}

// globs are several patterns; any of them is enough.
type globs []glob

func parseGlobs(patterns []string) (globs, error) {
	var all globs
	for _, p := range patterns {
		g, err := parseGlob(p)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func (gs globs) match(name string) bool {
	return slices.ContainsFunc(gs, func(g glob) bool { return g.match(name) })
}

// folded is the same patterns without regard to spelling: a protected path stays
// protected on a file system that does not tell case or accents apart, and from a
// name that only reads as it.
func (gs globs) folded() globs {
	var all globs
	for _, g := range gs {
		var f glob
		for _, part := range g {
			f = append(f, spelling.Skeleton(part))
		}
		all = append(all, f)
	}
	return all
}
