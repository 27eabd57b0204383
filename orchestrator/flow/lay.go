package flow

import (
	"slices"
)

// Sizes of a drawing, in px.
const (
	BoxWidth  = 176
	BoxHeight = 44
	gapX      = 48
	gapY      = 92 // holds the labels of arrows
	margin    = 16
	lane      = 26 // between arrows that lead up, at the right
	dummy     = 28 // what a passing arrow takes of a layer
)

// Point is a place in the drawing.
type Point struct{ X, Y int }

type Box struct {
	Name  string
	Layer int
	Point // its upper left corner
}

// Line is an edge with its way: Way begins at the lower side of From and ends at the upper
// side of To; one that leads up goes round at the right.
type Line struct {
	Edge
	Way  []Point
	Text Point // middle of the label
}

// Chart is a whole drawing.
type Chart struct {
	Width, Height int
	Boxes         []Box
	Lines         []Line
}

// cell is a box in a layer, or the place where a long arrow passes.
type cell struct {
	name  string // "" for a passing arrow
	edge  int
	x     int // of its middle
	width int
}

// layout is a drawing under way.
type layout struct {
	edges  []Edge
	layer  map[string]int
	rows   [][]*cell
	box    map[string]*cell
	passes map[int][]*cell // by edge, from above to below
}

// Lay makes the drawing of edges, the first of which begins at the top.
func Lay(edges []Edge) Chart {
	l := &layout{edges: slices.Clone(edges), layer: map[string]int{}, box: map[string]*cell{}, passes: map[int][]*cell{}}
	names := l.names()
	l.layers(names)
	l.fill(names)
	l.order()
	l.place()
	return l.chart(names)
}

func (l *layout) names() []string {
	var names []string
	for _, e := range l.edges {
		for _, n := range []string{e.From, e.To} {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// layers puts every agent below those that handed to it. What leads back to somebody who
// is still above, in the order of the walk, is marked as leading up and moves nobody.
func (l *layout) layers(names []string) {
	out := map[string][]int{}
	for i, e := range l.edges {
		out[e.From] = append(out[e.From], i)
	}
	const (
		walking = 1
		done    = 2
	)
	state := map[string]int{}
	var order []string
	var walk func(n string)
	walk = func(n string) {
		state[n] = walking
		for _, i := range out[n] {
			switch to := l.edges[i].To; state[to] {
			case walking:
				l.edges[i].Back = true
			case done:
			default:
				walk(to)
			}
		}
		state[n] = done
		order = append(order, n)
	}
	for _, n := range names {
		if state[n] == 0 {
			walk(n)
		}
	}
	slices.Reverse(order) // callers come before whom they call
	for _, n := range order {
		for _, i := range out[n] {
			if e := l.edges[i]; !e.Back {
				l.layer[e.To] = max(l.layer[e.To], l.layer[n]+1)
			}
		}
	}
}

// fill makes the rows: boxes in the order of their names' first arrow, then passing arrows.
func (l *layout) fill(names []string) {
	deepest := 0
	for _, n := range names {
		deepest = max(deepest, l.layer[n])
	}
	l.rows = make([][]*cell, deepest+1)
	for _, n := range names {
		c := &cell{name: n, edge: -1, width: BoxWidth}
		l.box[n] = c
		l.rows[l.layer[n]] = append(l.rows[l.layer[n]], c)
	}
	for i, e := range l.edges {
		if e.Back {
			continue
		}
		for row := l.layer[e.From] + 1; row < l.layer[e.To]; row++ {
			c := &cell{edge: i, width: dummy}
			l.passes[i] = append(l.passes[i], c)
			l.rows[row] = append(l.rows[row], c)
		}
	}
}

// order sorts each row by the middle of what leads into it, so that few arrows cross.
func (l *layout) order() {
	rank := map[*cell]float64{}
	for i, row := range l.rows {
		if i > 0 {
			means := map[*cell]float64{}
			for at, c := range row {
				sum, n := 0.0, 0
				for _, above := range l.above(c) {
					sum, n = sum+rank[above], n+1
				}
				if means[c] = float64(at); n > 0 {
					means[c] = sum / float64(n)
				}
			}
			slices.SortStableFunc(row, func(a, b *cell) int {
				switch {
				case means[a] < means[b]:
					return -1
				case means[a] > means[b]:
					return 1
				}
				return 0
			})
		}
		for at, c := range row {
			rank[c] = (float64(at) + 0.5) / float64(len(row))
		}
	}
}

// above lists what leads into a cell from the row over it.
func (l *layout) above(c *cell) []*cell {
	if c.name == "" {
		way := l.passes[c.edge]
		if at := slices.Index(way, c); at > 0 {
			return way[at-1 : at]
		}
		return []*cell{l.box[l.edges[c.edge].From]}
	}
	var all []*cell
	for i, e := range l.edges {
		switch way := l.passes[i]; {
		case e.Back || e.To != c.name:
		case len(way) > 0:
			all = append(all, way[len(way)-1])
		default:
			all = append(all, l.box[e.From])
		}
	}
	return all
}

// place centres the rows over one another.
func (l *layout) place() {
	widest := 0
	widths := make([]int, len(l.rows))
	for i, row := range l.rows {
		for _, c := range row {
			widths[i] += c.width + gapX
		}
		widths[i] -= gapX
		widest = max(widest, widths[i])
	}
	for i, row := range l.rows {
		x := margin + (widest-widths[i])/2
		for _, c := range row {
			c.x = x + c.width/2
			x += c.width + gapX
		}
	}
}

// top is where a row begins.
func top(row int) int { return margin + row*(BoxHeight+gapY) }
