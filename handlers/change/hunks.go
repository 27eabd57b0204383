package change

import (
	"regexp"

	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
	"gatehouse/views/diff"
)

// Drawing is how the lines of one file come onto the page.
type Drawing struct {
	N     int    // of the file
	Path  string // the file's name, for its colours
	Page  string // the address of the page
	W     Window // the changed lines of the file that are on it
	Total int    // lines of the new file; below 0: not known
	Open  []Span // folded lines that were opened
	Long  Long
}

// HunksOf turns hunks into drawn ones, cut to the changed lines of the window, and the
// gap that follows the last of them, nil for none. rows is how many lines the page still
// takes.
func HunksOf(d Drawing, hunks []patch.Hunk, rows *int) (out []diff.DiffHunk, tail *diff.DiffHunk) {
	changed, next := 0, 1 // changed lines so far; the new line that would follow
	ended := false        // the last hunk is on the page to its end
	for _, h := range hunks {
		skipped := max(0, h.NewStart-next)
		if h.NewLines == 0 { // git counts the line before an empty side
			skipped = max(0, h.NewStart+1-next)
		}
		gap := Span{next, next + skipped - 1}
		first, last := len(h.Lines), 0 // of the lines inside
		for k, l := range h.Lines {
			inside := changed >= d.W.From && changed < d.W.To
			if l.Kind != ' ' {
				changed++
			}
			if inside && *rows >= 0 {
				first, last = min(first, k), k+1
				*rows--
			}
			if l.New > 0 {
				next = l.New + 1
			}
		}
		next = max(next, gap.To+1)
		ended = last == len(h.Lines)
		if first >= last {
			continue
		}
		if first > 0 { // what is before is on another page
			skipped = 0
		}
		patch.MarkWords(h.Lines[first:last])
		raw := each.Of(h.Lines[first:last], d.Long.raw)
		drawn := diff.NewHunk(d.Path, skipped, h.Section, raw)
		if first == 0 {
			d.links(&drawn, gap, false)
		}
		d.Long.link(drawn.Lines)
		out = append(out, drawn)
	}
	if rest := d.Total - next + 1; rest > 0 && ended && len(out) > 0 {
		tail = &diff.DiffHunk{Skipped: rest}
		d.links(tail, Span{next, d.Total}, true)
	}
	return out, tail
}

// expandStep is how many folded lines one press shows.
const expandStep = 20

// links adds to a gap what shows its lines.
func (d Drawing) links(h *diff.DiffHunk, gap Span, last bool) {
	if gap.To < gap.From {
		return
	}
	link := func(s Span) *diff.Expand {
		return &diff.Expand{Lines: s.lines(), Open: Spec(d.N, s), Href: openHref(d.Page, d.N, s)}
	}
	if gap.lines() <= expandStep {
		h.All = link(gap)
		return
	}
	if gap.From > 1 {
		h.Down = link(Span{gap.From, gap.From + expandStep - 1})
	}
	if !last {
		h.Up = link(Span{gap.To - expandStep + 1, gap.To})
	}
	if gap.lines() <= MaxRows/2 {
		h.All = link(gap)
	}
}

// Unfold cuts the lines of a whole file to what is shown of it: what changed with so many
// lines around it, and what was opened. It passes each line once: a file may have ten
// thousand changes.
func Unfold(whole []patch.Hunk, around int, open []Span) []patch.Hunk {
	var out []patch.Hunk
	for _, h := range whole {
		keep, above := Kept(h.Lines, around, open), passed{}
		for i := 0; i < len(h.Lines); {
			k := i
			for k < len(h.Lines) && keep[k] == keep[i] {
				k++
			}
			if keep[i] {
				out = append(out, cutHunk(h.Lines[i:k], above))
			}
			for _, l := range h.Lines[i:k] {
				above.pass(l)
			}
			i = k
		}
	}
	return out
}

// Kept says which lines stay.
func Kept(lines []patch.Line, around int, open []Span) []bool {
	keep := make([]bool, len(lines))
	last := -around - 1 // the changed line before
	for i, l := range lines {
		if l.Kind != ' ' {
			for k := max(0, i-around, last+1); k <= i; k++ {
				keep[k] = true
			}
			last = i
		}
		if i-last <= around || l.New > 0 && opened(open, l.New) {
			keep[i] = true
		}
	}
	return keep
}

// passed is what the lines above a part of a file say of it.
type passed struct {
	old, new int    // the numbers of the last ones
	section  string // the nearest heading
}

// heading is git's own rule for the line that names where a hunk is.
var heading = regexp.MustCompile(`^[A-Za-z_$]`)

func (p *passed) pass(l patch.Line) {
	const most = 80 // bytes, as git cuts it
	if l.Old > 0 {
		p.old = l.Old
	}
	if l.New > 0 {
		p.new = l.New
	}
	if l.Kind != '+' && heading.MatchString(l.Text) {
		p.section = l.Text[:min(len(l.Text), most)]
	}
}

// cutHunk is a part of a hunk of a whole file as a hunk of its own.
func cutHunk(lines []patch.Line, above passed) patch.Hunk {
	part := patch.Hunk{Lines: lines, Section: above.section}
	for _, l := range lines {
		if l.Old > 0 {
			if part.OldLines++; part.OldStart == 0 {
				part.OldStart = l.Old
			}
		}
		if l.New > 0 {
			if part.NewLines++; part.NewStart == 0 {
				part.NewStart = l.New
			}
		}
	}
	if part.OldLines == 0 { // an empty side is counted from the line before
		part.OldStart = above.old
	}
	if part.NewLines == 0 {
		part.NewStart = above.new
	}
	return part
}
