package diff

import (
	"fmt"
	"unicode/utf8"

	"gatehouse/orchestrator/patch"
	"gatehouse/views"
)

// maxLineBytes is how much of one line is drawn; the warning "cut" goes by the same bound.
const maxLineBytes = patch.MaxColumns

// leadBytes is how much of a line stands before a change that is brought into view: little
// enough that a window shows the change without being moved.
const leadBytes = 40

// PartWords is what is drawn of the line: the bytes that are asked for, else the beginning, or
// where the change begins when that is farther to the right. Never half a character.
func (r RawLine) part() (from, to int) {
	switch n := len(r.Text); {
	case n <= maxLineBytes:
		return 0, n
	case r.To > 0:
		from, to = r.From, r.To
	case len(r.Changed) > 0 && r.Changed[0][0] > maxLineBytes-leadBytes:
		from = r.Changed[0][0] - leadBytes
		to = from + maxLineBytes
	default:
		to = maxLineBytes
	}
	from, to = border(r.Text, from), border(r.Text, to)
	if from >= to { // an address that names nothing of this line
		from, to = 0, border(r.Text, maxLineBytes)
	}
	return from, to
}

// border is the nearest place at or before i where a character begins. Bytes that are no
// UTF-8 are characters of their own: each is shown by its value.
func border(s string, i int) int {
	i = min(max(i, 0), len(s))
	for back := 1; back < utf8.UTFMax && i < len(s) && i-back >= 0; back++ {
		if _, size := utf8.DecodeRuneInString(s[i-back:]); size > back {
			return i - back
		}
	}
	return i
}

// cut is what is drawn of the line.
func (r RawLine) cut() string {
	from, to := r.part()
	return r.Text[from:to]
}

// cutOf says what is not drawn of a long line, and at which columns it changed.
func (l *DiffLine) cutOf(r RawLine) {
	from, to := r.part()
	if l.Before, l.Shown, l.Cut = from, to-from, len(r.Text)-to; l.Before+l.Cut == 0 || len(r.Changed) == 0 {
		return
	}
	first, last := r.Changed[0][0], r.Changed[len(r.Changed)-1][1]
	l.ChangeAt, l.ChangeOff = first, first < from || first >= to
	l.ColFrom = utf8.RuneCountInString(r.Text[:first]) + 1
	l.ColTo = l.ColFrom + max(1, utf8.RuneCountInString(r.Text[first:last])) - 1
}

// changedColumns names where a cut line changed: "changed at columns 120,001 to 120,010".
func (l DiffLine) changedColumns() string {
	if l.ColTo > l.ColFrom {
		return fmt.Sprintf("changed at columns %s to %s", views.Thousands(l.ColFrom), views.Thousands(l.ColTo))
	}
	return "changed at column " + views.Thousands(l.ColFrom)
}
