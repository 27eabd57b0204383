package patch

import (
	"unicode"
	"unicode/utf8"
)

// Bounds on marking words: longer runs are shown without marks, which costs nothing but
// colour. Of longer lines one run is marked, from the first byte that differs to the last.
const (
	maxPairs  = 200        // changed lines in a row
	maxTokens = 400        // words of one line
	maxWide   = MaxColumns // bytes of one line
)

// MarkWords pairs the removed lines of each run with the added ones that follow,
// in order, and marks what differs between two of a pair.
func MarkWords(lines []Line) {
	for i := 0; i < len(lines); {
		if lines[i].Kind != '-' {
			i++
			continue
		}
		start := i
		for i < len(lines) && lines[i].Kind == '-' {
			i++
		}
		middle := i
		for i < len(lines) && lines[i].Kind == '+' {
			i++
		}
		n := min(middle-start, i-middle)
		if n == 0 || n > maxPairs {
			continue
		}
		for k := range n {
			markPair(&lines[start+k], &lines[middle+k])
		}
	}
}

// markPair marks two lines that have at least a third in common; else they are
// two different lines, and marks would only be noise.
func markPair(old, new *Line) {
	if len(old.Text) > maxWide || len(new.Text) > maxWide {
		markRun(old, new)
		return
	}
	a, b := tokens(old.Text), tokens(new.Text)
	if len(a) > maxTokens || len(b) > maxTokens {
		return
	}
	keepA, keepB := common(old.Text, new.Text, a, b)
	same := 0
	for i, t := range a {
		if keepA[i] {
			same += t.End - t.Start
		}
	}
	if 3*same < max(len(old.Text), len(new.Text)) {
		return
	}
	old.Spans, new.Spans = gaps(a, keepA), gaps(b, keepB)
}

// markRun marks what stands between the common beginning and the common end of two long
// lines: what changed at column 120,000 must be found there.
func markRun(old, new *Line) {
	a, b := old.Text, new.Text
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for head > 0 && (inRune(a, head) || inRune(b, head)) {
		head--
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && (inRune(a, len(a)-tail) || inRune(b, len(b)-tail)) {
		tail--
	}
	if 3*(head+tail) < max(len(a), len(b)) {
		return
	}
	for l, text := range map[*Line]string{old: a, new: b} {
		l.Spans = nil
		if end := len(text) - tail; end > head {
			l.Spans = []Span{{head, end}}
		}
	}
}

// inRune reports whether i is inside of a character, not at its border.
func inRune(s string, i int) bool {
	return i > 0 && i < len(s) && !utf8.RuneStart(s[i])
}

// tokens splits a text into words, runs of blanks and single marks.
func tokens(s string) []Span {
	var out []Span
	class := 0
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		k := 3
		switch {
		case c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c):
			k = 1
		case c == ' ' || c == '\t':
			k = 2
		}
		if k == class && k != 3 {
			out[len(out)-1].End = i + n
		} else {
			out = append(out, Span{i, i + n})
		}
		class = k
		i += n
	}
	return out
}

// common finds a longest common run of tokens.
func common(s, t string, a, b []Span) (keepA, keepB []bool) {
	keepA, keepB = make([]bool, len(a)), make([]bool, len(b))
	width := len(b) + 1
	length := make([]int32, (len(a)+1)*width)
	equal := func(i, j int) bool { return s[a[i].Start:a[i].End] == t[b[j].Start:b[j].End] }
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if equal(i, j) {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case equal(i, j):
			keepA[i], keepB[j] = true, true
			i++
			j++
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return keepA, keepB
}

// gaps joins neighbouring tokens that are not kept.
func gaps(all []Span, keep []bool) []Span {
	var out []Span
	for i, t := range all {
		if keep[i] {
			continue
		}
		if n := len(out); n > 0 && out[n-1].End == t.Start {
			out[n-1].End = t.End
		} else {
			out = append(out, t)
		}
	}
	return out
}
