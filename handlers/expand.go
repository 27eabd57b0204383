package handlers

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
)

// span is a run of lines of the new file, both ends included.
type span struct{ from, to int }

func (s span) lines() int { return s.to - s.from + 1 }

// maxSpans is how many opened runs of lines an address may name.
const maxSpans = 200

// opensOf reads ?open=3:21-40;5:1-20, lines of files by their numbers that are shown
// though nothing near them changed. What is not understood opens nothing.
func opensOf(q url.Values) map[int][]span {
	all := map[int][]span{}
	for i, part := range strings.Split(q.Get("open"), ";") {
		file, lines, _ := strings.Cut(part, ":")
		from, to, ok := strings.Cut(lines, "-")
		n, errN := strconv.Atoi(file)
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if i < maxSpans && ok && errN == nil && errA == nil && errB == nil && n > 0 && a > 0 && b >= a {
			all[n] = append(all[n], span{a, b})
		}
	}
	return all
}

func opened(open []span, line int) bool {
	return slices.ContainsFunc(open, func(s span) bool { return line >= s.from && line <= s.to })
}

// spec is how an address names lines of a file.
func spec(n int, s span) string { return fmt.Sprintf("%d:%d-%d", n, s.from, s.to) }

// openHref is the page with these lines shown too, at the first of them.
func openHref(page string, n int, s span) string {
	return withOpen(page, n, s) + fmt.Sprintf("#F%dR%d", n, s.from)
}

func withOpen(page string, n int, s span) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	open := spec(n, s)
	if had := u.Query().Get("open"); had != "" {
		open = had + ";" + open
	}
	return withParam(page, "open", open)
}

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
	at := linePlace{file: count(m[1]), from: count(m[3]), left: m[2] == "L"}
	at.to = at.from
	if m[4] != "" {
		at.to = max(at.from, count(m[4]))
	}
	return at, at.file > 0 && at.from > 0
}

// seek answers ?at=F3R42: it returns the address of the page that has the line, with the
// line opened where nothing near it changed. A line that is nowhere leads to its file.
func (p *Pages) seek(ctx context.Context, q url.Values, path string, r approval.Request, v approval.Revision) (string, error) {
	anchor := q.Get("at")
	at, ok := placeNamed(anchor)
	path = withoutParams(path, "at", "page", "file", "part")
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
	changed, found := 0, span{}
	err := p.Reviewer.EachHunks(ctx, v, r.Repository, func(i int) bool { return i == at.file-1 }, wholeFile, func(_ int, hunks []patch.Hunk) error {
		changed, found = locate(hunks, at)
		return nil
	})
	if err != nil {
		return "", err
	}
	if total > pageAbove {
		path = withParam(path, "page", strconv.Itoa((start+changed)/pageLines+1))
	}
	if found.from > 0 {
		path = withOpen(path, at.file, found)
	}
	return path + "#" + anchor, nil
}

// locate counts the changed lines before a place of a whole file; lines is what has to be
// opened for it, the zero span for a line that is in the diff anyway.
func locate(whole []patch.Hunk, at linePlace) (changed int, lines span) {
	for _, h := range whole {
		near := kept(h.Lines, usualContext, nil)
		for i, l := range h.Lines {
			number := l.New
			if at.left {
				number = l.Old
			}
			if number == at.to {
				if l.Kind == ' ' && !near[i] {
					lines = span{max(1, l.New-(at.to-at.from)-usualContext), l.New + usualContext}
				}
				return changed, lines
			}
			if l.Kind != ' ' {
				changed++
			}
		}
	}
	return changed, span{}
}

// partOf is the file that ?part=F3 asks for alone; 0: none.
func partOf(q url.Values) int {
	if s, ok := strings.CutPrefix(q.Get("part"), "F"); ok {
		return count(s)
	}
	return 0
}
