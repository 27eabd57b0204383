package change

import (
	"net/url"
	"strconv"

	"gatehouse/handlers"
	"gatehouse/orchestrator/patch"
	"gatehouse/views/diff"
)

// longStep is the part of a long line that one link shows, in bytes. Parts follow each
// other without a gap, so that every byte of a line can be read however long it is.
const longStep = 64 << 10

// longLead is how much stands before a place in a line to which a link leads, in bytes.
const longLead = 40

// Long says which part of which line of a file is shown in place of the usual.
type Long struct {
	n    int // of the file
	path string
	line string // F3R42; "" none
	to   int    // the byte before which the part ends; it begins longStep before that
	// whole: the lines are those of the whole file at its new place, beside its diff.
	Whole bool
}

// anchor names a line of the file.
func (g Long) anchor(l diff.DiffLine) string {
	if g.Whole {
		return diff.WholeAnchor(g.n, l)
	}
	return diff.Anchor(g.n, l)
}

// LongOf reads ?more=&to=.
func LongOf(q url.Values, path string, n int) Long {
	l := Long{n: n, path: path}
	if to, err := strconv.Atoi(q.Get("to")); err == nil && to > 0 {
		l.line, l.to = q.Get("more"), to
	}
	return l
}

func (g Long) raw(l patch.Line) diff.RawLine {
	raw := diff.RawLine{Op: diff.Op(l.Kind), Old: l.Old, New: l.New, Text: l.Text, NoEOL: l.NoNewline}
	for _, s := range l.Spans {
		raw.Changed = append(raw.Changed, [2]int{s.Start, s.End})
	}
	if g.line != "" && g.line == g.anchor(diff.DiffLine{Op: raw.Op, Old: raw.Old, New: raw.New}) {
		raw.From, raw.To = max(0, g.to-longStep), g.to
	}
	return raw
}

// link leads from a line that is cut to its other parts.
func (g Long) link(lines []diff.DiffLine) {
	for i, l := range lines {
		if l.Before+l.Cut == 0 {
			continue
		}
		anchor := g.anchor(l)
		if l.Cut > 0 {
			lines[i].More = longHref(g.path, anchor, l.Before+l.Shown+longStep)
			if l.Before == 0 && l.Shown < longStep { // the beginning, with what stands here
				lines[i].More = longHref(g.path, anchor, longStep)
			}
		}
		if l.Before > 0 {
			lines[i].Less = longHref(g.path, anchor, l.Before)
		}
		if l.ChangeOff {
			lines[i].Change = PlaceInLine(g.path, anchor, l.ChangeAt)
		}
	}
}

// longHref is the page with the part of a line that ends before a byte.
func longHref(path, anchor string, to int) string {
	return handlers.WithParam(handlers.WithParam(path, "more", anchor), "to", strconv.Itoa(to)) + "#" + anchor
}

// PlaceInLine is the page with the part of a line that begins a little before a byte.
func PlaceInLine(path, anchor string, at int) string {
	return longHref(path, anchor, max(0, at-longLead)+longStep)
}
