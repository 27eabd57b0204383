package task

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/views"

	"pgregory.net/rapid"
)

func TestTimelinePinchesLongWaits(t *testing.T) {
	start := atNoon.Add(-48 * time.Hour)
	rows := []TreeRow{{Spans: []Span{
		{SpanWorking, start, start.Add(30 * time.Second)},
		{SpanPerson, start.Add(30 * time.Second), atNoon.Add(-10 * time.Second)},
		{SpanLanding, atNoon.Add(-10 * time.Second), time.Time{}},
	}}}
	tl := newTimeline(rows, atNoon, pinchAll)
	if len(tl.Gaps) != 1 || tl.Gaps[0].Text != "1 d 23 h" && tl.Gaps[0].Text != "2 d" {
		t.Fatalf("gaps: %+v", tl.Gaps)
	}
	bars := tl.bars(rows[0], atNoon)
	if w := bars[0].W; w < 60 || w > 75 {
		t.Errorf("30 of 40 s of work take %.1f per cent", w)
	}
	if w := bars[1].W; w < gapWidth-.01 || w > gapWidth+.01 {
		t.Errorf("the gap takes %.1f per cent", w)
	}
	all := func(string) bool { return true }
	if open := newTimeline(rows, atNoon, all); open.pinched() || open.bars(rows[0], atNoon)[0].W > 1 {
		t.Error("an open timeline must be true to scale")
	}
}

func pinchAll(string) bool { return false }

// Each gap opens by itself and keeps its name; the longest ones are pinched where there are
// too many.
func TestGapsOpenOneByOne(t *testing.T) {
	start := atNoon.Add(-100 * time.Hour)
	var spans []Span
	for i := range 11 { // ten gaps, of 1 to 10 hours
		spans = append(spans, Span{SpanWorking, start, start.Add(time.Second)})
		start = start.Add(time.Second + time.Duration(i+1)*time.Hour)
	}
	rows := []TreeRow{{Spans: spans}}
	shut := newTimeline(rows, atNoon, pinchAll)
	if len(shut.Gaps) != maxGapsDrawn || shut.Gaps[0].Text != "3 h" || shut.Gaps[7].Text != "10 h" {
		t.Fatalf("gaps: %+v", shut.Gaps)
	}
	p := DelegationPage{Chrome: views.Chrome{Path: "/delegations/x?tab=timeline"}}
	third := shut.Gaps[2]
	href := p.gapHref(third, shut.Gaps)
	if href != "/delegations/x?gap="+third.Key+"&tab=timeline" {
		t.Errorf("one gap is opened at %s", href)
	}
	p.Path, p.Keep = href, url.Values{"gap": {third.Key}}
	one := newTimeline(rows, atNoon, p.gapOpen)
	for i, g := range one.Gaps {
		if g.Open != (i == 2) || g.Key != shut.Gaps[i].Key {
			t.Errorf("gap %d is %+v", i, g)
		}
	}
	if one.Gaps[2].W < 20 || one.Gaps[3].W > gapWidth+.01 {
		t.Errorf("the open gap takes %.1f per cent, the next one %.1f", one.Gaps[2].W, one.Gaps[3].W)
	}
	if back := p.gapHref(one.Gaps[2], one.Gaps); back != "/delegations/x?tab=timeline" {
		t.Errorf("it is pinched again at %s", back)
	}
	// From all in full, one alone is pinched.
	p.Path, p.Keep, p.Open = "/delegations/x?pinch=off&tab=timeline", nil, true
	full := newTimeline(rows, atNoon, p.gapOpen)
	if to := p.gapHref(full.Gaps[0], full.Gaps); strings.Contains(to, "pinch") || strings.Contains(to, full.Gaps[0].Key) || !strings.Contains(to, full.Gaps[7].Key) {
		t.Errorf("from all in full one is pinched at %s", to)
	}
}

// However the spans lie, bars stay on the page.
func TestTimelineStaysInside(t *testing.T) {
	kinds := []SpanKind{SpanQueued, SpanWorking, SpanChild, SpanPerson, SpanLanding}
	rapid.Check(t, func(t *rapid.T) {
		var rows []TreeRow
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			var r TreeRow
			for range rapid.IntRange(0, 5).Draw(t, "spans") {
				from := atNoon.Add(-time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, "from")))
				to := from.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Hour)).Draw(t, "length")))
				r.Spans = append(r.Spans, Span{rapid.SampledFrom(kinds).Draw(t, "kind"), from, to})
			}
			rows = append(rows, r)
		}
		tl := newTimeline(rows, atNoon, func(string) bool { return rapid.Bool().Draw(t, "open") })
		for _, r := range rows {
			for _, b := range tl.bars(r, atNoon) {
				if b.X < 0 || b.W <= 0 || b.X+b.W > 100+minBar+.001 {
					t.Fatalf("bar from %.2f, %.2f wide", b.X, b.W)
				}
			}
		}
	})
}

func TestGuidesDrawTheTree(t *testing.T) {
	rows := []TreeRow{{Depth: 0}, {Depth: 1}, {Depth: 2}, {Depth: 2}, {Depth: 1}}
	want := []string{"", "├", "│├", "│└", "└"}
	for i, g := range guides(rows) {
		if got := strings.Join(g, ""); got != want[i] {
			t.Errorf("row %d: %q, want %q", i, got, want[i])
		}
	}
}

// atNoon is when the drawings of these tests are looked at.
var atNoon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
