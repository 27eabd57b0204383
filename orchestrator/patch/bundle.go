package patch

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Import puts a bundle's objects into the mirror and checks that commit is
// complete afterwards. Importing twice is importing once. Where the commit that
// the bundle builds on is missing, the source is fetched once.
//
// git's own `bundle unbundle` is not used: it also wants the base to be
// reachable from a ref, which no longer holds once somebody rewrote the branch.
func (r *Mirror) Import(ctx context.Context, bundle []byte, commit string) error {
	if err := checkIDs(commit); err != nil {
		return err
	}
	if err := r.ensure(ctx); err != nil {
		return err
	}
	if r.Has(ctx, commit) && r.complete(ctx, commit) == nil {
		return nil
	}
	needs, pack, err := splitBundle(bundle)
	if err != nil {
		return fmt.Errorf("import %s: %w", commit, err)
	}
	if !r.hasAll(ctx, needs) {
		if err := r.Fetch(ctx); err != nil {
			return fmt.Errorf("import %s: %w", commit, err)
		}
		if !r.hasAll(ctx, needs) {
			return fmt.Errorf("import %s: %w: the commit that it builds on is no longer in %s", commit, ErrMissing, r.repo.Redacted())
		}
	}
	if _, err := r.git(ctx, command{args: []string{"index-pack", "--stdin", "--fix-thin"}, stdin: bytes.NewReader(pack)}); err != nil {
		return fmt.Errorf("import %s: %w", commit, err)
	}
	if err := r.complete(ctx, commit); err != nil {
		return fmt.Errorf("import %s: %w: %w", commit, ErrMissing, err)
	}
	return nil
}

// complete checks that a commit's whole tree is there.
func (r *Mirror) complete(ctx context.Context, commit string) error {
	_, err := r.git(ctx, command{args: []string{"rev-list", "--objects", "--no-walk", "--quiet", "--end-of-options", commit}})
	return err
}

func (r *Mirror) hasAll(ctx context.Context, ids []string) bool {
	found, err := r.sizes(ctx, ids)
	if err != nil {
		return false
	}
	for _, id := range ids {
		if n, ok := found[id]; !ok || n < 0 {
			return false
		}
	}
	return true
}

// splitBundle reads a bundle's header (gitformat-bundle, versions 2 and 3):
// what it needs, and the pack behind it.
func splitBundle(bundle []byte) (needs []string, pack []byte, err error) {
	rest := bundle
	first := true
	for {
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			return nil, nil, fmt.Errorf("the bundle has no end of its header")
		}
		line := string(rest[:n])
		rest = rest[n+1:]
		switch {
		case first && line != "# v2 git bundle" && line != "# v3 git bundle":
			return nil, nil, fmt.Errorf("this is no git bundle")
		case first:
			first = false
		case line == "":
			return needs, rest, nil
		case strings.HasPrefix(line, "-"):
			id, _, _ := strings.Cut(line[1:], " ")
			if err := checkIDs(id); err != nil {
				return nil, nil, err
			}
			needs = append(needs, id)
		}
	}
}
