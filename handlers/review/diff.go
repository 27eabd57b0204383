package review

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/handlers/change"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	view "gatehouse/views/review"
)

// Sizes of a diff on a page, in changed lines.
const (
	pageAbove  = patch.MaxLines // a larger change is cut into pages
	pageLines  = 500
	wholeFile  = 10_000_000
	maxContext = 5000 // lines of context around a hunk; a whole file of usual size
)

// diff fills the files of the page: the list is always complete, the lines are those
// of this page.
func (p *Pages) diff(ctx context.Context, q url.Values, page *view.ReviewPage, r approval.Request, v approval.Revision) error {
	around, err := contextOf(q)
	if err != nil {
		return err
	}
	only := q.Get("file")
	whole, total := 0, 0 // changed lines of all files, and of those that are asked for
	for _, f := range v.Files {
		whole += f.Added + f.Removed
		if only == "" || f.Path == only {
			total += f.Added + f.Removed
		}
	}
	w, n, err := windowOf(q, total)
	if err != nil {
		return err
	}
	shown := p.pageOf(page, v, w, only, total)
	if n := partOf(q); n > 0 { // one file is drawn again
		keep, ok := shown[n-1]
		if clear(shown); ok {
			shown[n-1] = keep
		}
	}
	if err := p.lines(ctx, q, page, r, v, shown, around); err != nil {
		return err
	}
	if whole > pageAbove {
		if page.Find, err = p.find(ctx, q, page.Path, r, v); err != nil {
			return err
		}
	}
	if pages := (total + pageLines - 1) / pageLines; total > pageAbove {
		page.CutNote = fmt.Sprintf("Page %d of %d: changed lines %d to %d of %d. The file list is complete.", n, pages, w.From+1, min(w.To, total), total)
		if n < pages {
			page.MoreFilesHref = handlers.WithParam(page.Path, "page", strconv.Itoa(n+1)) + "#files"
		}
	}
	return nil
}

// lines draws the lines of the files that are shown. Those of which folded lines were
// opened are read whole.
func (p *Pages) lines(ctx context.Context, q url.Values, page *view.ReviewPage, r approval.Request, v approval.Revision, shown map[int]change.Window, around int) error {
	open, rows := change.OpensOf(q), change.MaxRows
	totals, err := p.Reviewer.LineCounts(ctx, v, r.Repository, func(i int) bool { _, ok := shown[i]; return ok && v.Files[i].Status != patch.Deleted })
	if err != nil {
		return err
	}
	draw := func(i int, hunks []patch.Hunk) {
		f := &page.Files[i]
		d := change.Drawing{N: f.N, Path: f.Path, Page: page.Path, W: shown[i], Total: -1, Open: open[f.N], Long: change.LongOf(q, page.Path, f.N)}
		if n, ok := totals[i]; ok {
			d.Total = n
		}
		f.Hunks, f.Tail = change.HunksOf(d, hunks, &rows)
		if f.FullHref = handlers.WithParam(handlers.WithParam(page.Path, "file", f.Path), "ctx", strconv.Itoa(maxContext)); d.Total > 0 && d.Total <= change.MaxRows/2 {
			f.FullHref, f.FullOpen = change.WithOpen(page.Path, f.N, change.Span{From: 1, To: d.Total})+fmt.Sprintf("#F%d", f.N), change.Spec(f.N, change.Span{From: 1, To: d.Total})
		}
		if rows < 0 {
			f.Cut = fmt.Sprintf("Cut: a page has at most %d lines. Ask for less context.", change.MaxRows)
		}
	}
	isOpen := func(i int) bool {
		return len(open[i+1]) > 0 && v.Files[i].Status != patch.Added && v.Files[i].Status != patch.Deleted
	}
	if err := p.wholes(ctx, q, page, r, v, shown, totals); err != nil {
		return err
	}
	err = p.Reviewer.EachHunks(ctx, v, r.Repository, func(i int) bool { _, ok := shown[i]; return ok && !isOpen(i) }, around, func(i int, hunks []patch.Hunk) error {
		draw(i, hunks)
		return nil
	})
	if err != nil {
		return err
	}
	return p.Reviewer.EachHunks(ctx, v, r.Repository, func(i int) bool { _, ok := shown[i]; return ok && isOpen(i) }, wholeFile, func(i int, hunks []patch.Hunk) error {
		draw(i, change.Unfold(hunks, around, open[i+1]))
		return nil
	})
}

// pageOf lists all files and returns which lines of which are on this page. The others
// lead to where they are.
func (p *Pages) pageOf(page *view.ReviewPage, v approval.Revision, w change.Window, only string, total int) map[int]change.Window {
	shown, start := map[int]change.Window{}, 0
	for i, f := range v.Files {
		file, lines := change.FileRow(i+1, f, v), f.Added+f.Removed
		if file.Binary != nil && pictured(f) {
			file.Binary.OldHref, file.Binary.NewHref = pictureHref(page, file.N, "L", f.OldBlob), pictureHref(page, file.N, "R", f.NewBlob)
		}
		mine := change.Window{From: w.From - start, To: w.To - start} // in this file's own count
		switch {
		case only != "" && f.Path != only:
			file.Elsewhere = handlers.WithParam(handlers.WithoutParams(page.Path, "page", "ctx"), "file", f.Path) + fmt.Sprintf("#F%d", file.N)
			page.Files = append(page.Files, file)
			continue
		case lines > 0 && (mine.From >= lines || mine.To <= 0), lines == 0 && (mine.From > 0 || mine.To <= 0):
			file.Elsewhere = handlers.WithParam(page.Path, "page", strconv.Itoa(min(start, total-1)/pageLines+1)) + fmt.Sprintf("#F%d", file.N)
		case !f.Binary:
			shown[i] = mine
		}
		start += lines
		page.Files = append(page.Files, file)
	}
	return shown
}

// contextOf reads ?ctx=, the lines of context around each hunk.
func contextOf(q url.Values) (int, error) {
	s := q.Get("ctx")
	if s == "" {
		return change.UsualContext, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, handlers.Refuse(orchestrator.CodeBadRequest, "The number of context lines is not understood. Use a number from 0 on.")
	}
	return min(n, maxContext), nil
}

// windowOf reads ?page= of a change that is cut into pages; others have one page.
func windowOf(q url.Values, total int) (change.Window, int, error) {
	if total <= pageAbove {
		return change.Window{From: 0, To: total + 1}, 1, nil
	}
	n := 1
	if s := q.Get("page"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 || (n-1)*pageLines >= total {
			return change.Window{}, 0, handlers.Refuse(orchestrator.CodeNotFound, "This change has no page of that number. Start at the first one.")
		}
	}
	if n*pageLines >= total { // files without lines at the end are on the last page
		return change.Window{From: (n - 1) * pageLines, To: total + 1}, n, nil
	}
	return change.Window{From: (n - 1) * pageLines, To: n * pageLines}, n, nil
}
