package handlers

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
)

// Bounds of a search over a long diff.
const (
	maxHits = 200
	maxHit  = 160 // bytes of a line around what was found
)

// find searches the lines of the whole diff, as far as it is text; letters of either
// case are alike. It is for changes of which a page shows a part.
func (p *Pages) find(ctx context.Context, q url.Values, path string, r approval.Request, v approval.Revision) (*views.Find, error) {
	out := &views.Find{Text: q.Get("find")}
	if len(out.Text) > 200 {
		out.Text = strings.ToValidUTF8(out.Text[:200], "")
	}
	if out.Text == "" {
		return out, nil
	}
	want, start, binary := strings.ToLower(out.Text), 0, 0
	for i, f := range v.Files {
		lines := f.Added + f.Removed
		if f.Binary {
			binary++
		} else if lines > 0 {
			hunks, err := p.Reviewer.Hunks(ctx, v, r.Repository, f, 0)
			if err != nil {
				return nil, err
			}
			if !search(out, hunks, want, spot{n: i + 1, name: f.Path, start: start, path: path}) {
				break
			}
		}
		start += lines
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

// search adds the hits of one file; false once there are enough.
func search(out *views.Find, hunks []patch.Hunk, want string, at spot) bool {
	changed := 0
	for _, h := range hunks {
		for _, l := range h.Lines {
			if l.Kind == ' ' {
				continue
			}
			if i := strings.Index(strings.ToLower(l.Text), want); i >= 0 {
				if len(out.Hits) == maxHits {
					out.More = true
					return false
				}
				d := views.DiffLine{Op: views.Op(l.Kind), Old: l.Old, New: l.New}
				href := withParam(at.path, "page", strconv.Itoa((at.start+changed)/pageLines+1))
				out.Hits = append(out.Hits, views.Hit{Path: at.name, Name: views.LineName(d), Text: around(l.Text, i, len(want)), Href: href + "#" + views.Anchor(at.n, d)})
			}
			changed++
		}
	}
	return true
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
