package handlers

import (
	"net/url"
	"strconv"

	"gatehouse/orchestrator/patch"
	"gatehouse/views"
)

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
