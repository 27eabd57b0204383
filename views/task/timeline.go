package task

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"gatehouse/views"
)

// The drawing's width is 100 per cent; positions are per cent, so that it needs no
// script and no inline style, and its patterns keep their size at any width.
const (
	gapWidth     = 5.0 // per cent that a pinched gap takes: about 48 px on a desk
	gapFactor    = 2   // a gap longer than this many times all work together is pinched
	minGap       = 5 * time.Second
	minBar       = 0.35 // per cent: a bar is never too thin to see
	wantedTicks  = 6
	maxGapsDrawn = 8 // the longest ones; more would leave no room for work
)

// bar is one drawn stretch.
type bar struct {
	Kind  SpanKind
	X, W  float64 // per cent
	Title string
}

// tick is a mark on the axis.
type tick struct {
	X    float64
	Text string
}

// gap is a stretch without work: pinched, or opened by whoever looks.
type gap struct {
	Key  string // names it in the address
	X, W float64
	Text string
	Open bool
}

// timeline maps moments to places and holds what is drawn once for all rows.
type timeline struct {
	segments []segment
	Ticks    []tick
	Gaps     []gap
	start    time.Time
	end      time.Time
}

// segment is a stretch of time with one scale.
type segment struct {
	from, to time.Time
	x, w     float64
	pinched  bool
}

// gapKey names a gap by its beginning, which stays where it is while its end still moves.
func gapKey(s segment) string { return strconv.FormatInt(s.from.UnixMilli(), 36) }

// newTimeline lays out the time of all rows, and of what works without having one. Gaps
// that open says yes to are drawn in full.
func newTimeline(rows []TreeRow, now time.Time, open func(key string) bool, hidden ...Span) timeline {
	t := timeline{}
	var busy []Span
	for _, r := range append(rows[:len(rows):len(rows)], TreeRow{Spans: hidden}) {
		for _, s := range r.Spans {
			if s.To.IsZero() || s.To.After(now) {
				s.To = now
			}
			if t.start.IsZero() || s.From.Before(t.start) {
				t.start = s.From
			}
			if s.To.After(t.end) {
				t.end = s.To
			}
			if s.Kind == SpanWorking || s.Kind == SpanLanding || s.Kind == SpanQueued {
				busy = append(busy, s)
			}
		}
	}
	if !t.end.After(t.start) {
		t.end = t.start.Add(time.Second)
	}
	gaps := findGaps(union(busy), t.start, t.end)
	pinched := slices.DeleteFunc(slices.Clone(gaps), func(s segment) bool { return open(gapKey(s)) })
	t.segments = scale(pinched, t.start, t.end)
	for _, s := range gaps {
		g := gap{Key: gapKey(s), X: t.x(s.from), Text: views.Duration(s.to.Sub(s.from)), Open: open(gapKey(s))}
		g.W = t.x(s.to) - g.X
		t.Gaps = append(t.Gaps, g)
	}
	t.Ticks = t.ticks()
	return t
}

// union merges overlapping stretches into an ordered list.
func union(spans []Span) []segment {
	ordered := make([]segment, 0, len(spans))
	for _, s := range spans {
		if s.To.After(s.From) {
			ordered = append(ordered, segment{from: s.From, to: s.To})
		}
	}
	slices.SortFunc(ordered, func(a, b segment) int { return a.from.Compare(b.from) })
	var out []segment
	for _, s := range ordered {
		if n := len(out); n > 0 && !s.from.After(out[n-1].to) {
			if s.to.After(out[n-1].to) {
				out[n-1].to = s.to
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// findGaps gives the stretches without work that are worth pinching, in order.
func findGaps(busy []segment, start, end time.Time) []segment {
	var work time.Duration
	for _, s := range busy {
		work += s.to.Sub(s.from)
	}
	limit := max(gapFactor*work, minGap)
	var gaps []segment
	at := start
	for _, s := range append(busy, segment{from: end, to: end}) {
		if s.from.Sub(at) > limit {
			gaps = append(gaps, segment{from: at, to: s.from, pinched: true})
		}
		if s.to.After(at) {
			at = s.to
		}
	}
	if len(gaps) > maxGapsDrawn { // the longest, in the order of time
		slices.SortStableFunc(gaps, func(a, b segment) int { return cmp.Compare(b.to.Sub(b.from), a.to.Sub(a.from)) })
		gaps = gaps[:maxGapsDrawn]
		slices.SortFunc(gaps, func(a, b segment) int { return a.from.Compare(b.from) })
	}
	return gaps
}

// scale shares the width: a fixed part to each gap, the rest by time.
func scale(gaps []segment, start, end time.Time) []segment {
	shown := end.Sub(start)
	for _, g := range gaps {
		shown -= g.to.Sub(g.from)
	}
	room := 100 - gapWidth*float64(len(gaps))
	var out []segment
	x, at := 0.0, start
	add := func(s segment) {
		out = append(out, s)
		x += s.w
	}
	for _, g := range append(gaps, segment{from: end, to: end}) {
		if g.from.After(at) {
			add(segment{from: at, to: g.from, x: x, w: room * float64(g.from.Sub(at)) / float64(max(shown, 1))})
		}
		if g.pinched {
			g.x, g.w = x, gapWidth
			add(g)
		}
		at = g.to
	}
	return out
}

// x is the place of a moment in per cent.
func (t timeline) x(at time.Time) float64 {
	for _, s := range t.segments {
		if at.After(s.to) {
			continue
		}
		if at.Before(s.from) {
			return s.x
		}
		length := s.to.Sub(s.from)
		if length <= 0 {
			return s.x
		}
		return s.x + s.w*float64(at.Sub(s.from))/float64(length)
	}
	return 100
}

// bars are the drawn stretches of one row.
func (t timeline) bars(r TreeRow, now time.Time) []bar {
	var out []bar
	for _, s := range r.Spans {
		to := s.To
		if to.IsZero() || to.After(now) {
			to = now
		}
		x := t.x(s.From)
		w := max(t.x(to)-x, minBar)
		out = append(out, bar{Kind: s.Kind, X: min(x, 100-minBar), W: min(w, 100-x+minBar), Title: spanWords[s.Kind] + " · " + views.Duration(to.Sub(s.From))})
	}
	return out
}

// spanWords name the kinds of time in the legend and for readers aloud.
var spanWords = map[SpanKind]string{
	SpanQueued: "queued", SpanWorking: "working", SpanChild: "waits for child",
	SpanPerson: "waits for a person", SpanLanding: "checks and landing",
}

var legend = []SpanKind{SpanWorking, SpanLanding, SpanChild, SpanQueued, SpanPerson}

// pinched says that some gap is not drawn in full.
func (t timeline) pinched() bool {
	return slices.ContainsFunc(t.Gaps, func(g gap) bool { return !g.Open })
}

// ticks marks round times since the start, never inside a gap.
func (t timeline) ticks() []tick {
	var shown time.Duration
	for _, s := range t.segments {
		if !s.pinched {
			shown += s.to.Sub(s.from)
		}
	}
	step := niceStep(shown / wantedTicks)
	var out []tick
	for _, s := range t.segments {
		if s.pinched {
			continue
		}
		first := s.from.Sub(t.start).Truncate(step)
		for d := first; d <= s.to.Sub(t.start); d += step {
			at := t.start.Add(d)
			if at.Before(s.from) {
				continue
			}
			x := t.x(at)
			if x > 97 || len(out) > 0 && x-out[len(out)-1].X < 7 {
				continue
			}
			out = append(out, tick{X: x, Text: tickText(d)})
		}
	}
	return out
}

func tickText(d time.Duration) string {
	if d == 0 {
		return "0 s"
	}
	return views.Duration(d)
}

// niceStep is the first round step that is not smaller.
func niceStep(d time.Duration) time.Duration {
	for _, s := range []time.Duration{
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
		10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
		20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
	} {
		if s >= d {
			return s
		}
	}
	return 30 * 24 * time.Hour
}

// treeLine is a row with the lines that stand before its name.
type treeLine struct {
	Row    TreeRow
	Guides []string
	Parent bool // the next row is below this one
}

func treeLines(rows []TreeRow) []treeLine {
	out := make([]treeLine, len(rows))
	for i, g := range guides(rows) {
		out[i] = treeLine{rows[i], g, i+1 < len(rows) && rows[i+1].Depth > rows[i].Depth}
	}
	return out
}

// guides says for each row which tree lines stand before its name: one of "│", "├",
// "└" or " " per level. Rows come depth first.
func guides(rows []TreeRow) [][]string {
	out := make([][]string, len(rows))
	for i, r := range rows {
		g := make([]string, r.Depth)
		for level := 1; level <= r.Depth; level++ {
			more := moreAt(rows, i, level)
			switch {
			case level == r.Depth && more:
				g[level-1] = "├"
			case level == r.Depth:
				g[level-1] = "└"
			case more:
				g[level-1] = "│"
			default:
				g[level-1] = " "
			}
		}
		out[i] = g
	}
	return out
}

// moreAt says whether another row of this level follows before its parent's branch ends.
func moreAt(rows []TreeRow, i, level int) bool {
	for _, r := range rows[i+1:] {
		if r.Depth < level {
			return false
		}
		if r.Depth == level {
			return true
		}
	}
	return false
}
