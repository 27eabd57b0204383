package review

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/handlers/change"
	"gatehouse/orchestrator/patch"
	"gatehouse/views/diff"
	view "gatehouse/views/review"
)

// Bounds of a search over a long diff.
const (
	maxHits = 200
	maxHit  = 160 // bytes of a line around what was found
)

// find searches the lines of the whole diff, as far as it is text; letters of either
// case are alike. It is for changes of which a page shows a part.
func (p *Pages) find(ctx context.Context, q url.Values, path string, r approval.Request, v approval.Revision) (*view.Find, error) {
	out := &view.Find{Text: q.Get("find")}
	if len(out.Text) > 200 {
		out.Text = strings.ToValidUTF8(out.Text[:200], "")
	}
	if out.Text == "" {
		return out, nil
	}
	want, binary, starts, start := strings.ToLower(out.Text), 0, make([]int, len(v.Files)), 0
	for i, f := range v.Files {
		starts[i] = start
		start += f.Added + f.Removed
		if f.Binary {
			binary++
		}
	}
	err := p.Reviewer.EachHunks(ctx, v, r.Repository, func(i int) bool { return !v.Files[i].Binary }, 0, func(i int, hunks []patch.Hunk) error {
		if !out.More {
			search(out, hunks, want, spot{n: i + 1, name: v.Files[i].Path, start: starts[i], path: path})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if binary > 0 {
		out.Note = fmt.Sprintf("Not searched: %d binary.", binary)
	}
	return out, nil
}

// spot is where a file begins: its number, its name, and the changed lines before it.
type spot struct {
	n     int
	name  string
	start int
	path  string
}

// search adds the hits of one file, until there are enough.
func search(out *view.Find, hunks []patch.Hunk, want string, at spot) {
	changed := 0
	for _, h := range hunks {
		for _, l := range h.Lines {
			if l.Kind == ' ' {
				continue
			}
			if i := strings.Index(strings.ToLower(l.Text), want); i >= 0 {
				if len(out.Hits) == maxHits {
					out.More = true
					return
				}
				d := diff.DiffLine{Op: diff.Op(l.Kind), Old: l.Old, New: l.New}
				page := handlers.WithParam(handlers.WithoutParams(at.path, "file", "ctx"), "page", strconv.Itoa((at.start+changed)/pageLines+1))
				anchor := diff.Anchor(at.n, d)
				href := page + "#" + anchor
				if patch.LongLine(l.Text) { // not all of it is drawn
					href = change.PlaceInLine(page, anchor, i)
				}
				out.Hits = append(out.Hits, view.Hit{Path: at.name, Name: diff.LineName(d), Text: around(l.Text, i, len(want)), Href: href})
			}
			changed++
		}
	}
}

// around cuts a line to what stands around its hit.
func around(line string, at, n int) string {
	from := max(0, min(at, len(line))-maxHit/4)
	to := min(len(line), from+max(maxHit, n))
	s := strings.ToValidUTF8(line[from:to], "")
	if from > 0 {
		s = "…" + s
	}
	if to < len(line) {
		s += "…"
	}
	return strings.TrimSpace(s)
}
