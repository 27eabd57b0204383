package flow

// chart reads the drawing off the cells.
func (l *layout) chart(names []string) Chart {
	var c Chart
	for _, n := range names {
		b := Box{Name: n, Layer: l.layer[n], Point: Point{l.box[n].x - BoxWidth/2, top(l.layer[n])}}
		c.Boxes = append(c.Boxes, b)
		c.Width, c.Height = max(c.Width, b.X+BoxWidth+margin), max(c.Height, b.Y+BoxHeight+margin)
	}
	for _, row := range l.rows {
		for _, at := range row {
			c.Width = max(c.Width, at.x+at.width/2+margin)
		}
	}
	outs, ins := l.ports()
	up, ups := 0, 0
	for _, e := range l.edges {
		if e.Back {
			ups++
		}
	}
	right := c.Width
	var taken []int
	for i, e := range l.edges {
		line := Line{Edge: e}
		if e.Back {
			up++
			line.Way = l.upward(i, right+(up-1)*lane, outs, ins)
			line.Text = Point{right + ups*lane, free(&taken, (line.Way[2].Y+line.Way[3].Y)/2)}
			c.Width, c.Height = line.Text.X+labelWidth+margin, max(c.Height, line.Text.Y+step, line.Way[2].Y+margin)
		} else {
			line.Way, line.Text = l.downward(i, outs, ins)
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

// port is which of how many arrows of one side of a box an edge is.
type port struct{ at, of int }

// ports deals out the lower side of each box to the arrows that leave it, and the upper
// side to those that come in.
func (l *layout) ports() (outs, ins []port) {
	outN, inN := map[string]int{}, map[string]int{}
	for _, e := range l.edges {
		outs, ins = append(outs, port{at: outN[e.From]}), append(ins, port{at: inN[e.To]})
		outN[e.From]++
		inN[e.To]++
	}
	for i, e := range l.edges {
		outs[i].of, ins[i].of = outN[e.From], inN[e.To]
	}
	return outs, ins
}

// share is where on a side of a box a port lies.
func (p port) share() int { return BoxWidth * (p.at + 1) / (p.of + 1) }

// step is how far labels of arrows into the same box are apart.
const step = 16

func (l *layout) downward(i int, outs, ins []port) ([]Point, Point) {
	e := l.edges[i]
	from, to := l.layer[e.From], l.layer[e.To]
	way := []Point{{l.box[e.From].x - BoxWidth/2 + outs[i].share(), top(from) + BoxHeight}}
	for k, c := range l.passes[i] {
		row := top(from + 1 + k)
		way = append(way, Point{c.x, row}, Point{c.x, row + BoxHeight})
	}
	end := Point{l.box[e.To].x - BoxWidth/2 + ins[i].share(), top(to)}
	way = append(way, end)
	// Labels stand over the box that they lead to, one below the other.
	return way, Point{end.X, end.Y - 24 - ins[i].at%4*step}
}

// beside is how far from a box an arrow that leads up turns, so that it passes no other box
// of the row.
const beside = 10

// upward goes through the gap below its box to a lane beyond all boxes, and comes back
// through the gap above the box that it leads to.
func (l *layout) upward(i, x int, outs, ins []port) []Point {
	e := l.edges[i]
	out := Point{l.box[e.From].x - BoxWidth/2 + outs[i].share(), top(l.layer[e.From]) + BoxHeight}
	in := Point{l.box[e.To].x - BoxWidth/2 + ins[i].share(), top(l.layer[e.To])}
	low, high := out.Y+beside, in.Y-beside
	return []Point{out, {out.X, low}, {x, low}, {x, high}, {in.X, high}, in}
}

// labelWidth is the room for the labels of arrows that lead up, right of all lanes.
const labelWidth = 190

// free is the next height from y on where no label stands.
func free(taken *[]int, y int) int {
	for again := true; again; {
		again = false
		for _, t := range *taken {
			if y-t < step && t-y < step {
				y, again = t+step, true
			}
		}
	}
	*taken = append(*taken, y)
	return y
}
