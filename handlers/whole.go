package handlers

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/views/diff"
	reviewview "gatehouse/views/review"
)

// How many lines of files that moved are shown, beside what they changed.
const (
	wholeOpen = 300       // a file of so many is shown without being asked for
	wholeMost = pageAbove // while all of them on a page are not more than this
	wholeStep = 2000      // lines that one link shows
)

// wholes shows files that were renamed or copied as what they are where they are now: all
// of their lines are new there. Small ones are open, others have a link for each part.
func (p *Pages) wholes(ctx context.Context, q url.Values, page *reviewview.ReviewPage, r approval.Request, v approval.Revision, shown map[int]window, totals map[int]int) error {
	n, asked := wholeOf(q)
	parts, left := map[int]span{}, wholeMost
	for i, f := range v.Files {
		if _, ok := shown[i]; !ok || !f.Moved() || f.NewBlob == "" || f.TooLarge() {
			continue
		}
		lines, counted := totals[i]
		if !counted {
			lines = -1
		}
		w := &diff.WholeFile{Lines: lines, Size: f.NewSize, Href: wholeHref(page.Path, i+1, span{1, wholeStep})}
		if page.Against == 0 {
			w.Unseen, w.Seen = unseenHere(v, f), f.SeenHere
		}
		switch {
		case n == i+1:
			parts[i] = asked
		case counted && lines >= 0 && lines <= wholeOpen && lines <= left:
			parts[i] = span{1, max(1, lines)}
			left -= lines
		}
		page.Files[i].Whole = w
	}
	return p.Reviewer.EachWhole(ctx, v, r.Repository, func(i int) bool { return parts[i].to > 0 }, func(i int, hunks []patch.Hunk) error {
		f := &page.Files[i]
		drawWhole(f.Whole, parts[i], hunks, drawing{n: f.N, path: f.Path, page: page.Path, total: -1,
			long: longWhole(longOf(q, page.Path, f.N), v.Files[i])})
		return nil
	})
}

// longWhole is g for the lines of a whole file: beside a diff they have anchors of their own.
func longWhole(g long, f patch.File) long {
	g.whole = f.OldBlob != f.NewBlob
	return g
}

// drawWhole draws one part of the lines, with links to those before and after.
func drawWhole(w *diff.WholeFile, part span, hunks []patch.Hunk, d drawing) {
	w.Open, w.Lines = true, 0
	for _, h := range hunks {
		w.Lines += len(h.Lines)
	}
	if part.from > w.Lines {
		part = span{1, wholeStep}
	}
	part.to = min(part.to, w.Lines, part.from+wholeStep-1)
	d.w = window{part.from - 1, part.to}
	rows := maxRows
	w.Hunks, _ = hunksOf(d, hunks, &rows)
	for i := range w.Hunks {
		w.Hunks[i].Skipped = 0 // the links say what is not here
	}
	w.From, w.To = part.from, part.to
	if part.from > 1 {
		w.Prev = wholeHref(d.page, d.n, span{max(1, part.from-wholeStep), part.from - 1})
	}
	if part.to < w.Lines {
		w.Next = wholeHref(d.page, d.n, span{part.to + 1, part.to + wholeStep})
	}
}

// unseenHere reports whether nobody has approved the content of a moved file where it is now.
func unseenHere(v approval.Revision, f patch.File) bool {
	for _, w := range v.Warnings {
		if w.Code == "renamed_unseen" && w.Path == f.Path {
			return true
		}
	}
	return f.Unseen
}

// wholeOf reads ?whole=3:1-2000: lines of the third file.
func wholeOf(q url.Values) (file int, lines span) {
	name, part, _ := strings.Cut(q.Get("whole"), ":")
	from, to, _ := strings.Cut(part, "-")
	lines = span{max(1, count(from)), count(to)}
	if lines.to < lines.from {
		lines.to = lines.from + wholeStep - 1
	}
	return count(name), lines
}

// wholeHref is the page with these lines of the whole file.
func wholeHref(page string, n int, s span) string {
	return withParam(withoutParams(page, "more", "to"), "whole", spec(n, s)) + fmt.Sprintf("#F%d-whole", n)
}
