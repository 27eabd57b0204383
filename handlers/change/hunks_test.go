package change

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/patch"
	"gatehouse/views/diff"

	"pgregory.net/rapid"
)

// Whole is a file of so many lines of which those with these numbers changed.
func whole(lines int, changed ...int) []patch.Hunk {
	is := map[int]bool{}
	for _, n := range changed {
		is[n] = true
	}
	h := patch.Hunk{OldStart: 1, NewStart: 1, OldLines: lines, NewLines: lines}
	for n := 1; n <= lines; n++ {
		text := fmt.Sprintf("  line %d", n)
		if n%10 == 1 {
			text = fmt.Sprintf("func at%d() {", n)
		}
		if is[n] {
			h.Lines = append(h.Lines, patch.Line{Kind: '-', Old: n, Text: text}, patch.Line{Kind: '+', New: n, Text: text + "!"})
			continue
		}
		h.Lines = append(h.Lines, patch.Line{Kind: ' ', Old: n, New: n, Text: text})
	}
	return []patch.Hunk{h}
}

// drawn writes hunks as 38-44, and gaps as the number of their lines.
func drawn(hunks []diff.DiffHunk, tail *diff.DiffHunk) string {
	var parts []string
	for _, h := range hunks {
		if h.Skipped > 0 {
			parts = append(parts, fmt.Sprintf("⋯%d", h.Skipped))
		}
		first, last := 0, 0
		for _, l := range h.Lines {
			if l.New > 0 {
				if last = l.New; first == 0 {
					first = l.New
				}
			}
		}
		parts = append(parts, fmt.Sprintf("%d-%d", first, last))
	}
	if tail != nil {
		parts = append(parts, fmt.Sprintf("⋯%d", tail.Skipped))
	}
	return strings.Join(parts, " ")
}

func TestOpenedLinesAreShownBetweenTheChanges(t *testing.T) {
	for _, c := range []struct {
		open []Span
		want string
	}{
		{nil, "⋯36 37-43 ⋯53 97-103 ⋯97"},
		{[]Span{{17, 36}}, "⋯16 17-43 ⋯53 97-103 ⋯97"},
		{[]Span{{44, 96}}, "⋯36 37-103 ⋯97"},
		{[]Span{{60, 62}}, "⋯36 37-43 ⋯16 60-62 ⋯34 97-103 ⋯97"},
		{[]Span{{190, 400}}, "⋯36 37-43 ⋯53 97-103 ⋯86 190-200"},
		{[]Span{{1, 200}}, "1-200"},
	} {
		rows := MaxRows
		d := Drawing{N: 3, Path: "a.go", Page: "/p?view=split", W: Window{0, 100}, Total: 200, Open: c.open}
		hunks, tail := HunksOf(d, Unfold(whole(200, 40, 100), UsualContext, c.open), &rows)
		if got := drawn(hunks, tail); got != c.want {
			t.Errorf("%v: %s, want %s", c.open, got, c.want)
		}
	}
}

// A gap offers 20 lines at each end that has a neighbour, or all of itself when it is short.
func TestAGapOffersItsLines(t *testing.T) {
	rows := MaxRows
	d := Drawing{N: 3, Path: "a.go", Page: "/p?open=1:2-3", W: Window{0, 100}, Total: 200}
	hunks, tail := HunksOf(d, Unfold(whole(200, 40, 60, 130), UsualContext, nil), &rows)
	if h := hunks[0]; h.Down != nil || h.Up.Open != "3:17-36" || h.All.Open != "3:1-36" || h.All.Lines != 36 {
		t.Errorf("at the beginning: %+v %+v %+v", h.Up, h.Down, h.All)
	}
	if h := hunks[1]; h.Up != nil || h.Down != nil || h.All.Open != "3:44-56" {
		t.Errorf("a short one: %+v %+v %+v", h.Up, h.Down, h.All)
	}
	if h := hunks[2]; h.Down.Open != "3:64-83" || h.Up.Open != "3:107-126" || h.Header != "func at121() {" {
		t.Errorf("between: %+v %+v %q", h.Up, h.Down, h.Header)
	}
	if tail.Up != nil || tail.Down.Open != "3:134-153" || tail.All.Open != "3:134-200" {
		t.Errorf("at the end: %+v %+v", tail.Up, tail.Down)
	}
	u, err := url.Parse(tail.Down.Href)
	if err != nil || u.Query().Get("open") != "1:2-3;3:134-153" || u.Fragment != "F3R134" {
		t.Errorf("leads to %s (%v)", tail.Down.Href, err)
	}
}

// Whatever is opened, every changed line is shown, lines stay in order, and gaps and lines
// together are the file.
func TestUnfoldingLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 120).Draw(t, "lines")
		changed := rapid.SliceOfN(rapid.IntRange(1, n), 1, 8).Draw(t, "changed")
		var open []Span
		for range rapid.IntRange(0, 4).Draw(t, "spans") {
			a := rapid.IntRange(1, n).Draw(t, "from")
			open = append(open, Span{a, a + rapid.IntRange(0, 40).Draw(t, "more")})
		}
		all := whole(n, changed...)
		want := 0
		for _, l := range all[0].Lines {
			if l.Kind != ' ' {
				want++
			}
		}
		rows := MaxRows
		d := Drawing{N: 1, Path: "a", Page: "/p", W: Window{0, want + 1}, Total: n}
		hunks, tail := HunksOf(d, Unfold(all, rapid.IntRange(0, 5).Draw(t, "around"), open), &rows)
		lines, seen, last := 0, 0, 0
		for _, h := range hunks {
			lines += h.Skipped
			for _, l := range h.Lines {
				if l.Op != diff.OpContext {
					seen++
				}
				if l.New > 0 {
					lines++
					if l.New <= last {
						t.Fatalf("line %d after %d", l.New, last)
					}
					last = l.New
				}
			}
		}
		if tail != nil {
			lines += tail.Skipped
		}
		if lines != n || seen != want {
			t.Fatalf("%d lines of %d, %d changes of %d", lines, n, seen, want)
		}
	})
}

// An agent may change every tenth line of a long list of figures, in which nothing looks
// like a heading: opening one fold of it takes time in line with the file's length.
func TestAFoldOfALongFileOpensAtOnce(t *testing.T) {
	const lines = 200_000
	h := patch.Hunk{OldStart: 1, NewStart: 1}
	for n := 1; n <= lines; n++ {
		if n%10 == 0 { // a line less
			h.Lines = append(h.Lines, patch.Line{Kind: '-', Old: n, Text: "7;8;9"})
			continue
		}
		h.Lines = append(h.Lines, patch.Line{Kind: ' ', Old: n, New: n - n/10, Text: "1;2;3"})
	}
	began := time.Now()
	hunks := Unfold([]patch.Hunk{h}, 0, []Span{{1, 2}})
	t.Logf("%d lines took %s", lines, time.Since(began))
	if len(hunks) != 1+lines/10 {
		t.Fatalf("%d hunks", len(hunks))
	}
	if last := hunks[len(hunks)-1]; last.OldStart != lines || last.NewStart != lines-lines/10 || last.NewLines != 0 || last.Section != "" {
		t.Errorf("the last is %+v", last)
	}
}
