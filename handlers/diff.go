package handlers

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	"gatehouse/views/diff"
	reviewview "gatehouse/views/review"
)

// Sizes of a diff on a page, in changed lines.
const (
	pageAbove    = patch.MaxLines // a larger change is cut into pages
	pageLines    = 500
	usualContext = 3
	wholeFile    = 10_000_000
	maxContext   = 5000                             // lines of context around a hunk; a whole file of usual size
	usualLine    = 200                              // bytes
	closedAbove  = 1500                             // a single file of more lines starts closed
	maxRows      = pageAbove * (1 + 2*usualContext) // lines of one page with all their context: no changed line is cut that stands in the usual one
)

// window is the part of the changed lines that a page shows.
type window struct{ from, to int }

// diff fills the files of the page: the list is always complete, the lines are those
// of this page.
func (p *Pages) diff(ctx context.Context, q url.Values, page *reviewview.ReviewPage, r approval.Request, v approval.Revision) error {
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
		page.CutNote = fmt.Sprintf("Page %d of %d: changed lines %d to %d of %d. The file list is complete.", n, pages, w.from+1, min(w.to, total), total)
		if n < pages {
			page.MoreFilesHref = withParam(page.Path, "page", strconv.Itoa(n+1)) + "#files"
		}
	}
	return nil
}

// lines draws the lines of the files that are shown. Those of which folded lines were
// opened are read whole.
func (p *Pages) lines(ctx context.Context, q url.Values, page *reviewview.ReviewPage, r approval.Request, v approval.Revision, shown map[int]window, around int) error {
	open, rows := opensOf(q), maxRows
	totals, err := p.Reviewer.LineCounts(ctx, v, r.Repository, func(i int) bool { _, ok := shown[i]; return ok && v.Files[i].Status != patch.Deleted })
	if err != nil {
		return err
	}
	draw := func(i int, hunks []patch.Hunk) {
		f := &page.Files[i]
		d := drawing{n: f.N, path: f.Path, page: page.Path, w: shown[i], total: -1, open: open[f.N], long: longOf(q, page.Path, f.N)}
		if n, ok := totals[i]; ok {
			d.total = n
		}
		f.Hunks, f.Tail = hunksOf(d, hunks, &rows)
		if f.FullHref = withParam(withParam(page.Path, "file", f.Path), "ctx", strconv.Itoa(maxContext)); d.total > 0 && d.total <= maxRows/2 {
			f.FullHref, f.FullOpen = withOpen(page.Path, f.N, span{1, d.total})+fmt.Sprintf("#F%d", f.N), spec(f.N, span{1, d.total})
		}
		if rows < 0 {
			f.Cut = fmt.Sprintf("Cut: a page has at most %d lines. Ask for less context.", maxRows)
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
		draw(i, unfold(hunks, around, open[i+1]))
		return nil
	})
}

// pageOf lists all files and returns which lines of which are on this page. The others
// lead to where they are.
func (p *Pages) pageOf(page *reviewview.ReviewPage, v approval.Revision, w window, only string, total int) map[int]window {
	shown, start := map[int]window{}, 0
	for i, f := range v.Files {
		file, lines := fileRow(page, i+1, f, v), f.Added+f.Removed
		mine := window{w.from - start, w.to - start} // in this file's own count
		switch {
		case only != "" && f.Path != only:
			file.Elsewhere = withParam(withoutParams(page.Path, "page", "ctx"), "file", f.Path) + fmt.Sprintf("#F%d", file.N)
			page.Files = append(page.Files, file)
			continue
		case lines > 0 && (mine.from >= lines || mine.to <= 0), lines == 0 && (mine.from > 0 || mine.to <= 0):
			file.Elsewhere = withParam(page.Path, "page", strconv.Itoa(min(start, total-1)/pageLines+1)) + fmt.Sprintf("#F%d", file.N)
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
		return usualContext, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, Refuse(orchestrator.CodeBadRequest, "The number of context lines is not understood. Use a number from 0 on.")
	}
	return min(n, maxContext), nil
}

// windowOf reads ?page= of a change that is cut into pages; others have one page.
func windowOf(q url.Values, total int) (window, int, error) {
	if total <= pageAbove {
		return window{0, total + 1}, 1, nil
	}
	n := 1
	if s := q.Get("page"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 || (n-1)*pageLines >= total {
			return window{}, 0, Refuse(orchestrator.CodeNotFound, "This change has no page of that number. Start at the first one.")
		}
	}
	if n*pageLines >= total { // files without lines at the end are on the last page
		return window{(n - 1) * pageLines, total + 1}, n, nil
	}
	return window{(n - 1) * pageLines, n * pageLines}, n, nil
}

// fileRow is a file without its lines.
func fileRow(page *reviewview.ReviewPage, n int, f patch.File, v approval.Revision) diff.DiffFile {
	row := diff.DiffFile{N: n, Path: f.Path, OldPath: f.OldPath, Status: string(f.Status), Added: f.Added, Removed: f.Removed,
		OldMode: f.OldMode, NewMode: f.NewMode, Similarity: f.Similarity}
	for _, w := range v.Warnings {
		if w.Path == f.Path {
			row.Warnings = append(row.Warnings, w.Code)
		}
	}
	lines := f.Added + f.Removed
	if f.TooLarge() {
		row.Cut = "Cut: a file of more than 64 MB is not shown in lines. Read it in the repository, or with gatehouse review."
	}
	switch {
	case f.Binary:
		row.Binary = &diff.BinaryChange{OldSize: sizeOf(f.OldBlob, f.OldSize), NewSize: sizeOf(f.NewBlob, f.NewSize), OldHash: f.OldBlob, NewHash: f.NewBlob}
		if pictured(f) {
			row.Binary.OldHref, row.Binary.NewHref = pictureHref(page, n, "L", f.OldBlob), pictureHref(page, n, "R", f.NewBlob)
		}
	case f.Generated:
		row.Closed = fmt.Sprintf("%s, %s", f.Reason, sizeWords(f))
	case f.Status == patch.Deleted:
		row.Closed = "show " + lineWords(lines)
	case lines > closedAbove:
		row.Closed = "large, " + lineWords(lines)
	}
	return row
}

// sizeWords is how big a file is that starts closed: a line may be a megabyte.
func sizeWords(f patch.File) string {
	s := lineWords(f.Added + f.Removed)
	if f.Bytes > int64(usualLine)*int64(f.Added+f.Removed) {
		s += ", " + views.Bytes(uint64(f.Bytes))
	}
	return s
}

func lineWords(n int) string {
	if n == 1 {
		return "1 line"
	}
	return strconv.Itoa(n) + " lines"
}

// sizeOf is a blob's size, −1 when there is none.
func sizeOf(blob string, size int64) int64 {
	if strings.Trim(blob, "0") == "" {
		return -1
	}
	return size
}
