package review

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/handlers/change"
	"gatehouse/orchestrator/patch"
	"gatehouse/views/diff"
	view "gatehouse/views/review"
)

// How many lines of files that moved are shown, beside what they changed.
const (
	wholeOpen = 300       // a file of so many is shown without being asked for
	wholeMost = pageAbove // while all of them on a page are not more than this
	wholeStep = 2000      // lines that one link shows
)

// wholes shows files that were renamed or copied as what they are where they are now: all
// of their lines are new there. Small ones are open, others have a link for each part.
func (p *Pages) wholes(ctx context.Context, q url.Values, page *view.ReviewPage, r approval.Request, v approval.Revision, shown map[int]change.Window, totals map[int]int) error {
	n, asked := wholeOf(q)
	parts, left := map[int]change.Span{}, wholeMost
	for i, f := range v.Files {
		if _, ok := shown[i]; !ok || !f.Moved() || f.NewBlob == "" || f.TooLarge() {
			continue
		}
		lines, counted := totals[i]
		if !counted {
			lines = -1
		}
		w := &diff.WholeFile{Lines: lines, Size: f.NewSize, Href: wholeHref(page.Path, i+1, change.Span{From: 1, To: wholeStep})}
		if page.Against == 0 {
			w.Unseen, w.Seen = unseenHere(v, f), f.SeenHere
		}
		switch {
		case n == i+1:
			parts[i] = asked
		case counted && lines >= 0 && lines <= wholeOpen && lines <= left:
			parts[i] = change.Span{From: 1, To: max(1, lines)}
			left -= lines
		}
		page.Files[i].Whole = w
	}
	return p.Reviewer.EachWhole(ctx, v, r.Repository, func(i int) bool { return parts[i].To > 0 }, func(i int, hunks []patch.Hunk) error {
		f := &page.Files[i]
		drawWhole(f.Whole, parts[i], hunks, change.Drawing{N: f.N, Path: f.Path, Page: page.Path, Total: -1,
			Long: longWhole(change.LongOf(q, page.Path, f.N), v.Files[i])})
		return nil
	})
}

// longWhole is g for the lines of a whole file: beside a diff they have anchors of their own.
func longWhole(g change.Long, f patch.File) change.Long {
	g.Whole = f.OldBlob != f.NewBlob
	return g
}

// drawWhole draws one part of the lines, with links to those before and after.
func drawWhole(w *diff.WholeFile, part change.Span, hunks []patch.Hunk, d change.Drawing) {
	w.Open, w.Lines = true, 0
	for _, h := range hunks {
		w.Lines += len(h.Lines)
	}
	if part.From > w.Lines {
		part = change.Span{From: 1, To: wholeStep}
	}
	part.To = min(part.To, w.Lines, part.From+wholeStep-1)
	d.W = change.Window{From: part.From - 1, To: part.To}
	rows := change.MaxRows
	w.Hunks, _ = change.HunksOf(d, hunks, &rows)
	for i := range w.Hunks {
		w.Hunks[i].Skipped = 0 // the links say what is not here
	}
	w.From, w.To = part.From, part.To
	if part.From > 1 {
		w.Prev = wholeHref(d.Page, d.N, change.Span{From: max(1, part.From-wholeStep), To: part.From - 1})
	}
	if part.To < w.Lines {
		w.Next = wholeHref(d.Page, d.N, change.Span{From: part.To + 1, To: part.To + wholeStep})
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
func wholeOf(q url.Values) (file int, lines change.Span) {
	name, part, _ := strings.Cut(q.Get("whole"), ":")
	from, to, _ := strings.Cut(part, "-")
	lines = change.Span{From: max(1, handlers.Count(from)), To: handlers.Count(to)}
	if lines.To < lines.From {
		lines.To = lines.From + wholeStep - 1
	}
	return handlers.Count(name), lines
}

// wholeHref is the page with these lines of the whole file.
func wholeHref(page string, n int, s change.Span) string {
	return handlers.WithParam(handlers.WithoutParams(page, "more", "to"), "whole", change.Spec(n, s)) + fmt.Sprintf("#F%d-whole", n)
}
