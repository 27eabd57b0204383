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
)

// Sizes of a diff on a page, in changed lines.
const (
	pageAbove    = 3000 // a larger change is cut into pages
	pageLines    = 500
	usualContext = 3
	maxContext   = 5000   // lines of context around a hunk; a whole file of usual size
	closedAbove  = 1500   // a single file of more lines starts closed
	maxRows      = 20_000 // lines of one page with all their context
)

// window is the part of the changed lines that a page shows.
type window struct{ from, to int }

// diff fills the files of the page: the list is always complete, the lines are those
// of this page.
func (p *Pages) diff(ctx context.Context, q url.Values, page *views.ReviewPage, r approval.Request, v approval.Revision) error {
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
	shown := p.pageOf(page, v, w, only)
	rows := maxRows
	err = p.Reviewer.EachHunks(ctx, v, r.Repository, func(i int) bool { _, ok := shown[i]; return ok }, around, func(i int, hunks []patch.Hunk) error {
		f := &page.Files[i]
		f.Hunks = hunksOf(f.Path, hunks, shown[i], longOf(q, page.Path, f.N), &rows)
		f.FullHref = withParam(withParam(page.Path, "file", f.Path), "ctx", strconv.Itoa(maxContext))
		if rows < 0 {
			f.Cut = fmt.Sprintf("Cut: a page has at most %d lines. Ask for less context.", maxRows)
		}
		return nil
	})
	if err != nil {
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

// pageOf lists all files and returns which lines of which are on this page. The others
// lead to where they are.
func (p *Pages) pageOf(page *views.ReviewPage, v approval.Revision, w window, only string) map[int]window {
	shown, start := map[int]window{}, 0
	for i, f := range v.Files {
		file, lines := fileRow(i+1, f, v), f.Added+f.Removed
		mine := window{w.from - start, w.to - start} // in this file's own count
		switch {
		case only != "" && f.Path != only:
			file.Elsewhere = withParam(withoutParams(page.Path, "page", "ctx"), "file", f.Path) + fmt.Sprintf("#F%d", file.N)
			page.Files = append(page.Files, file)
			continue
		case lines > 0 && (mine.from >= lines || mine.to <= 0), lines == 0 && (mine.from > 0 || mine.to <= 0):
			file.Elsewhere = withParam(page.Path, "page", strconv.Itoa(start/pageLines+1)) + fmt.Sprintf("#F%d", file.N)
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
	return window{(n - 1) * pageLines, n * pageLines}, n, nil
}

// fileRow is a file without its lines.
func fileRow(n int, f patch.File, v approval.Revision) views.DiffFile {
	row := views.DiffFile{N: n, Path: f.Path, OldPath: f.OldPath, Status: string(f.Status), Added: f.Added, Removed: f.Removed,
		OldMode: f.OldMode, NewMode: f.NewMode, Similarity: f.Similarity}
	for _, w := range v.Warnings {
		if w.Path == f.Path {
			row.Warnings = append(row.Warnings, w.Code)
		}
	}
	lines := f.Added + f.Removed
	switch {
	case f.Binary:
		row.Binary = &views.BinaryChange{OldSize: sizeOf(f.OldBlob, f.OldSize), NewSize: sizeOf(f.NewBlob, f.NewSize), OldHash: f.OldBlob, NewHash: f.NewBlob}
	case f.Generated:
		row.Closed = fmt.Sprintf("%s, %d lines", f.Reason, lines)
	case f.Status == patch.Deleted:
		row.Closed = fmt.Sprintf("deleted, %d lines", lines)
	case lines > closedAbove:
		row.Closed = fmt.Sprintf("large, %d lines", lines)
	}
	return row
}

// sizeOf is a blob's size, −1 when there is none.
func sizeOf(blob string, size int64) int64 {
	if strings.Trim(blob, "0") == "" {
		return -1
	}
	return size
}

// hunksOf turns hunks into drawn ones, cut to the changed lines of the window.
func hunksOf(path string, hunks []patch.Hunk, w window, long long, rows *int) []views.DiffHunk {
	var out []views.DiffHunk
	changed, next := 0, 1 // changed lines so far; the old line that would follow
	for _, h := range hunks {
		skipped := max(0, h.OldStart-next)
		if h.OldLines == 0 { // git counts the line before an empty side
			skipped = max(0, h.OldStart+1-next)
		}
		first, last := len(h.Lines), 0 // of the lines inside
		for k, l := range h.Lines {
			inside := changed >= w.from && changed < w.to
			if l.Kind != ' ' {
				changed++
			}
			if inside && *rows >= 0 {
				first, last = min(first, k), k+1
				*rows--
			}
			if l.Old > 0 {
				next = l.Old + 1
			}
		}
		var raw []views.RawLine
		if first < last {
			patch.MarkWords(h.Lines[first:last])
			for _, l := range h.Lines[first:last] {
				raw = append(raw, long.raw(l))
			}
		}
		if len(raw) > 0 {
			h := views.NewHunk(path, skipped, h.Section, raw)
			long.link(h.Lines)
			out = append(out, h)
		}
	}
	return out
}

// Steps in which a long line is shown, in bytes.
const (
	longStep = 64 << 10
	longMost = 4 << 20
)

// long says how much of which line of a file is shown beyond the usual.
type long struct {
	n    int // of the file
	path string
	line string // F3R42; "" none
	show int    // bytes
}

// longOf reads ?more=&to=.
func longOf(q url.Values, path string, n int) long {
	l := long{n: n, path: path}
	if to, err := strconv.Atoi(q.Get("to")); err == nil && to > 0 {
		l.line, l.show = q.Get("more"), min(to, longMost)
	}
	return l
}

func (g long) raw(l patch.Line) views.RawLine {
	raw := views.RawLine{Op: views.Op(l.Kind), Old: l.Old, New: l.New, Text: l.Text, NoEOL: l.NoNewline}
	for _, s := range l.Spans {
		raw.Changed = append(raw.Changed, [2]int{s.Start, s.End})
	}
	if g.line != "" && g.line == views.Anchor(g.n, views.DiffLine{Op: raw.Op, Old: raw.Old, New: raw.New}) {
		raw.Show = g.show
	}
	return raw
}

// link leads from a line that is cut to more of it.
func (g long) link(lines []views.DiffLine) {
	for i, l := range lines {
		anchor, show := views.Anchor(g.n, l), longStep
		if anchor == g.line {
			show += g.show
		}
		if l.Cut > 0 && show <= longMost {
			lines[i].More = withParam(withParam(g.path, "more", anchor), "to", strconv.Itoa(show)) + "#" + anchor
		}
	}
}
