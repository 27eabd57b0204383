package patch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gatehouse/orchestrator/textcut"
)

// Ahead counts the commits that to has and from has not, and those that from has and to
// has not: more than 0 of them say that history was rewritten. Both together end at most.
func (r *Mirror) Ahead(ctx context.Context, from, to string, most int) (ahead, lost int, err error) {
	if err := checkIDs(from, to); err != nil {
		return 0, 0, err
	}
	out, err := r.text(ctx, "rev-list", "--count", "--left-right", "--max-count="+strconv.Itoa(most), from+"..."+to)
	if err != nil {
		return 0, 0, fmt.Errorf("count the commits from %s to %s: %w", from, to, err)
	}
	if _, err := fmt.Sscan(out, &lost, &ahead); err != nil {
		return 0, 0, fmt.Errorf("git rev-list printed %q", textcut.Brief(out, 80))
	}
	return ahead, lost, nil
}

// Files returns those of the paths that are plain files of a tree, each up to max bytes,
// with two calls of git.
func (r *Mirror) Files(ctx context.Context, tree string, paths []string, max int64) (map[string][]byte, error) {
	if err := checkIDs(tree); err != nil {
		return nil, err
	}
	args := []string{"ls-tree", "-z", "--full-tree", tree, "--"}
	for _, p := range paths {
		if checkPath(p) == nil {
			args = append(args, p)
		}
	}
	if args[len(args)-1] == "--" { // git would list all of it
		return nil, nil
	}
	out, err := r.git(ctx, command{args: args})
	if err != nil {
		return nil, r.missing(err)
	}
	var names, ids []string
	for line := range bytes.SplitSeq(out, []byte{0}) {
		meta, name, ok := strings.Cut(string(line), "\t")
		if f := strings.Fields(meta); ok && len(f) == 3 && (f[0] == modeFile || f[0] == modeExec) {
			names, ids = append(names, name), append(ids, f[2])
		}
	}
	found := map[string][]byte{}
	err = r.blobs(ctx, ids, func(i int, _ int64, content io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(content, max))
		found[names[i]] = text
		return err
	})
	return found, err
}
