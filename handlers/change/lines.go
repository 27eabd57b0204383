package change

import "gatehouse/orchestrator/patch"

// mostCompared is how many pairs of lines are compared; of longer texts what differs is one
// block.
const mostCompared = 4_000_000

// Lines is what leads from one text to another, line by line, with all the lines that stay.
// It is for short texts that are no files, which git does not have.
func Lines(from, to []string) []patch.Line {
	head := 0
	for head < min(len(from), len(to)) && from[head] == to[head] {
		head++
	}
	tail := 0
	for tail < min(len(from), len(to))-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	a, b := from[head:len(from)-tail], to[head:len(to)-tail]
	stays := staying(a, b)
	w := writer{from: from, to: to}
	w.keep(head)
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j] && stays(i, j) == 1+stays(i+1, j+1):
			w.keep(1)
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || stays(i+1, j) >= stays(i, j+1)):
			w.remove()
			i++
		default:
			w.add()
			j++
		}
	}
	w.keep(tail)
	return w.lines
}

// staying counts the lines that stay of what follows the i-th of a and the j-th of b.
func staying(a, b []string) func(i, j int) int {
	if len(a)*len(b) > mostCompared {
		return func(int, int) int { return 0 }
	}
	width := len(b) + 1
	n := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			best := max(n[(i+1)*width+j], n[i*width+j+1])
			if a[i] == b[j] {
				best = max(best, 1+n[(i+1)*width+j+1])
			}
			n[i*width+j] = best
		}
	}
	return func(i, j int) int { return int(n[i*width+j]) }
}

// writer numbers the lines as they come.
type writer struct {
	from, to []string
	old, new int
	lines    []patch.Line
}

func (w *writer) keep(n int) {
	for range n {
		w.lines = append(w.lines, patch.Line{Kind: ' ', Old: w.old + 1, New: w.new + 1, Text: w.to[w.new]})
		w.old, w.new = w.old+1, w.new+1
	}
}

func (w *writer) remove() {
	w.lines = append(w.lines, patch.Line{Kind: '-', Old: w.old + 1, Text: w.from[w.old]})
	w.old++
}

func (w *writer) add() {
	w.lines = append(w.lines, patch.Line{Kind: '+', New: w.new + 1, Text: w.to[w.new]})
	w.new++
}
