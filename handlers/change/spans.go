package change

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/handlers"
)

// Span is a run of lines of the new file, both ends included.
type Span struct{ From, To int }

func (s Span) lines() int { return s.To - s.From + 1 }

// maxSpans is how many opened runs of lines an address may name.
const maxSpans = 200

// OpensOf reads ?open=3:21-40;5:1-20, lines of files by their numbers that are shown
// though nothing near them changed. What is not understood opens nothing.
func OpensOf(q url.Values) map[int][]Span {
	all := map[int][]Span{}
	for i, part := range strings.Split(q.Get("open"), ";") {
		file, lines, _ := strings.Cut(part, ":")
		from, to, ok := strings.Cut(lines, "-")
		n, errN := strconv.Atoi(file)
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if i < maxSpans && ok && errN == nil && errA == nil && errB == nil && n > 0 && a > 0 && b >= a {
			all[n] = append(all[n], Span{a, b})
		}
	}
	return all
}

func opened(open []Span, line int) bool {
	return slices.ContainsFunc(open, func(s Span) bool { return line >= s.From && line <= s.To })
}

// Spec is how an address names lines of a file.
func Spec(n int, s Span) string { return fmt.Sprintf("%d:%d-%d", n, s.From, s.To) }

// openHref is the page with these lines shown too, at the first of them.
func openHref(page string, n int, s Span) string {
	return WithOpen(page, n, s) + fmt.Sprintf("#F%dR%d", n, s.From)
}

func WithOpen(page string, n int, s Span) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	open := Spec(n, s)
	if had := u.Query().Get("open"); had != "" {
		open = had + ";" + open
	}
	return handlers.WithParam(page, "open", open)
}
