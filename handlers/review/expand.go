package review

import (
	"context"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/handlers/change"
	"gatehouse/orchestrator/patch"
)

// linePlace is a line, or a run of lines, that an address names: F3R42 or F3R42-R48.
type linePlace struct {
	file, from, to int
	left           bool
}

var placePattern = regexp.MustCompile(`^F(\d{1,7})([LR])(\d{1,9})(?:-[LR](\d{1,9}))?$`)

// placeNamed reads one.
func placeNamed(s string) (linePlace, bool) {
	m := placePattern.FindStringSubmatch(s)
	if m == nil {
		return linePlace{}, false
	}
	at := linePlace{file: handlers.Count(m[1]), from: handlers.Count(m[3]), left: m[2] == "L"}
	at.to = at.from
	if m[4] != "" {
		at.to = max(at.from, handlers.Count(m[4]))
	}
	return at, at.file > 0 && at.from > 0
}

// seek answers ?at=F3R42: it returns the address of the page that has the line, with the
// line opened where nothing near it changed. A line that is nowhere leads to its file.
func (p *Pages) seek(ctx context.Context, q url.Values, path string, r approval.Request, v approval.Revision) (string, error) {
	anchor := q.Get("at")
	at, ok := placeNamed(anchor)
	path = handlers.WithoutParams(path, "at", "page", "file", "part")
	if !ok || at.file > len(v.Files) {
		return path, nil
	}
	total, start := 0, 0
	for i, f := range v.Files {
		if i < at.file-1 {
			start += f.Added + f.Removed
		}
		total += f.Added + f.Removed
	}
	changed, found := 0, change.Span{}
	err := p.Reviewer.EachHunks(ctx, v, r.Repository, func(i int) bool { return i == at.file-1 }, wholeFile, func(_ int, hunks []patch.Hunk) error {
		changed, found = locate(hunks, at)
		return nil
	})
	if err != nil {
		return "", err
	}
	if total > pageAbove {
		path = handlers.WithParam(path, "page", strconv.Itoa((start+changed)/pageLines+1))
	}
	if found.From > 0 {
		path = change.WithOpen(path, at.file, found)
	}
	return path + "#" + anchor, nil
}

// locate counts the changed lines before a place of a whole file; lines is what has to be
// opened for it, the zero span for a line that is in the diff anyway.
func locate(whole []patch.Hunk, at linePlace) (changed int, lines change.Span) {
	for _, h := range whole {
		near := change.Kept(h.Lines, change.UsualContext, nil)
		for i, l := range h.Lines {
			number := l.New
			if at.left {
				number = l.Old
			}
			if number == at.to {
				if l.Kind == ' ' && !near[i] {
					lines = change.Span{From: max(1, l.New-(at.to-at.from)-change.UsualContext), To: l.New + change.UsualContext}
				}
				return changed, lines
			}
			if l.Kind != ' ' {
				changed++
			}
		}
	}
	return changed, change.Span{}
}

// partOf is the file that ?part=F3 asks for alone; 0: none.
func partOf(q url.Values) int {
	if s, ok := strings.CutPrefix(q.Get("part"), "F"); ok {
		return handlers.Count(s)
	}
	return 0
}
