package approval

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/patch"
)

// Content is what stands, or would stand, at a path of a repository.
type Content struct {
	Path string
	Blob string // full id
}

// maxContentPath is the longest path that is remembered, in bytes: an index holds no
// longer ones. Content at a longer path is asked about each time.
const maxContentPath = 1000

// contentOf is what f puts at its path. It is not remembered of a removed file, nor under
// a name that a database would not give back byte for byte.
func contentOf(f patch.File) (Content, bool) {
	sound := utf8.ValidString(f.Path) && !strings.ContainsAny(f.Path, "\x00\uFFFD") && len(f.Path) <= maxContentPath
	return Content{f.Path, f.NewBlob}, sound && f.NewBlob != ""
}

// Vouched is what people stand for once r has landed: every content of its revision, if a
// person approved it. A rule's yes says nothing of any content.
func (r Request) Vouched() []Content {
	person := func(d Decision) bool { return d.UserID != "" && !d.OfRule() }
	if r.IsHandover() || !slices.ContainsFunc(r.yes(), person) {
		return nil
	}
	var all []Content
	for _, f := range r.Revision.Files {
		if c, ok := contentOf(f); ok {
			all = append(all, c)
		}
	}
	return all
}

// markUnseen says of every file of the current revision that was moved or copied, whole or
// in part, whether a person has approved its content at its path before. If nobody has, it
// is a warning: a list that shows a move as one shows nothing of that content.
func markUnseen(ctx context.Context, tx Tx, r *Request) error {
	v := &r.Revision
	var moved []int
	var asked []Content
	for i, f := range v.Files {
		if f.From() == "" || f.NewBlob == "" || f.Empty() { // an empty file is seen by its name
			continue
		}
		moved = append(moved, i)
		if c, ok := contentOf(f); ok {
			asked = append(asked, c)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	seen, err := tx.Approved(ctx, r.Repository, asked)
	if err != nil {
		return err
	}
	v.Files = slices.Clone(v.Files)
	for _, i := range moved {
		f := &v.Files[i]
		c, ok := contentOf(*f)
		f.SeenHere = ok && seen[c]
		if f.Unseen = !f.SeenHere; f.Unseen {
			v.Warnings = patch.WithWarning(v.Warnings, "renamed_unseen", f.Path)
		}
	}
	return nil
}
