package views

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2/lexers"
	"pgregory.net/rapid"
)

func TestVisibleNamesWhatCannotBeSeen(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 漢 🙂":      "plain ä 漢 🙂",
		"a\u202Eb":         "a⟦U+202E⟧b",
		"\u2066x\u2069":    "⟦U+2066⟧x⟦U+2069⟧",
		"zero\u200Bwidth":  "zero⟦U+200B⟧width",
		"\x1b[31m":         "⟦U+001B⟧[31m",
		"nul\x00":          "nul⟦U+0000⟧",
		"bad\xffbyte":      "bad⟦0xFF⟧byte",
		"real \uFFFD mark": "real \uFFFD mark",
		"tag\U000E0041":    "tag⟦U+E0041⟧",
		"tab\tand\nline":   "tab\tand\nline",
		"cr\r\n":           "cr⟦U+000D⟧\n",
		"thin\u2009space":  "thin⟦U+2009⟧space",
	} {
		if got := visibleText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// Whatever comes in, highlighted lines read exactly as given.
func TestHighlightNeverChangesTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom([]string{"a.go", "b.py", "c.yml", "d.html", "Makefile", "e.unknown", "f.md", "g.sh"}).Draw(t, "path")
		lines := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune("ab \t\"'`{}()/*#<>$\\:=-\r\u202e0\n"))), 0, 12).Draw(t, "lines")
		for i := range lines {
			lines[i] = strings.ReplaceAll(lines[i], "\n", "")
		}
		got := Highlight(path, lines)
		if len(got) != len(lines) {
			t.Fatalf("%d lines became %d", len(lines), len(got))
		}
		for i, tokens := range got {
			var b strings.Builder
			for _, tok := range tokens {
				b.WriteString(tok.Text)
			}
			if b.String() != lines[i] {
				t.Fatalf("line %q became %q", lines[i], b.String())
			}
		}
	})
}

func TestHighlightColoursGoAndLeavesHugeLinesPlain(t *testing.T) {
	if got := Highlight("a.go", []string{"func main() {}"})[0]; got[0].Class != "k" || got[0].Text != "func" {
		t.Errorf("func is no keyword: %v", got)
	}
	if got := Highlight("a.go", []string{"x := \"" + strings.Repeat("a", maxHighlightLine) + "\""})[0]; len(got) != 1 {
		t.Error("a line over the limit was highlighted")
	}
}

func TestLongLinesAreCutBetweenCharacters(t *testing.T) {
	long := strings.Repeat("ä", maxLineBytes)
	h := NewHunk("a.txt", 0, "", []RawLine{{Op: OpAdded, New: 1, Text: long}})
	l := h.Lines[0]
	if l.Cut == 0 || l.Cut+len(l.Tokens[0].Text) != len(long) || !utf8.ValidString(l.Tokens[0].Text) {
		t.Errorf("cut %d of %d bytes, kept %d", l.Cut, len(long), len(l.Tokens[0].Text))
	}
}

func TestChangedWordsAreMarkedInsideTokens(t *testing.T) {
	got := markChanged([]Token{{Class: "k", Text: "func"}, {Text: " old("}}, [][2]int{{2, 7}})
	want := "fu|[nc]|[ ol]|d("
	var parts []string
	for _, tok := range got {
		if tok.Changed {
			parts = append(parts, "["+tok.Text+"]")
		} else {
			parts = append(parts, tok.Text)
		}
	}
	if strings.Join(parts, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(parts, "|"), want)
	}
}

func TestSideBySidePairsRemovedWithAdded(t *testing.T) {
	lines := []DiffLine{{Op: OpContext, Old: 1, New: 1}, {Op: OpRemoved, Old: 2}, {Op: OpRemoved, Old: 3}, {Op: OpAdded, New: 2}, {Op: OpContext, Old: 4, New: 3}, {Op: OpAdded, New: 4}}
	var got []string
	for _, r := range splitRows(lines) {
		s := ""
		if r.Left != nil {
			s += number(r.Left.Old)
		}
		s += "|"
		if r.Right != nil {
			s += number(r.Right.New)
		}
		got = append(got, s)
	}
	if want := "1|1 2|2 3| 4|3 |4"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}

func TestTimelinePinchesLongWaits(t *testing.T) {
	start := now.Add(-48 * time.Hour)
	rows := []TreeRow{{Spans: []Span{
		{SpanWorking, start, start.Add(30 * time.Second)},
		{SpanPerson, start.Add(30 * time.Second), now.Add(-10 * time.Second)},
		{SpanLanding, now.Add(-10 * time.Second), time.Time{}},
	}}}
	tl := newTimeline(rows, now, pinchAll)
	if len(tl.Gaps) != 1 || tl.Gaps[0].Text != "1 d 23 h" && tl.Gaps[0].Text != "2 d" {
		t.Fatalf("gaps: %+v", tl.Gaps)
	}
	bars := tl.bars(rows[0], now)
	if w := bars[0].W; w < 60 || w > 75 {
		t.Errorf("30 of 40 s of work take %.1f per cent", w)
	}
	if w := bars[1].W; w < gapWidth-.01 || w > gapWidth+.01 {
		t.Errorf("the gap takes %.1f per cent", w)
	}
	all := func(string) bool { return true }
	if open := newTimeline(rows, now, all); open.pinched() || open.bars(rows[0], now)[0].W > 1 {
		t.Error("an open timeline must be true to scale")
	}
}

func pinchAll(string) bool { return false }

// Each gap opens by itself and keeps its name; the longest ones are pinched where there are
// too many.
func TestGapsOpenOneByOne(t *testing.T) {
	start := now.Add(-100 * time.Hour)
	var spans []Span
	for i := range 11 { // ten gaps, of 1 to 10 hours
		spans = append(spans, Span{SpanWorking, start, start.Add(time.Second)})
		start = start.Add(time.Second + time.Duration(i+1)*time.Hour)
	}
	rows := []TreeRow{{Spans: spans}}
	shut := newTimeline(rows, now, pinchAll)
	if len(shut.Gaps) != maxGapsDrawn || shut.Gaps[0].Text != "3 h" || shut.Gaps[7].Text != "10 h" {
		t.Fatalf("gaps: %+v", shut.Gaps)
	}
	p := DelegationPage{Chrome: Chrome{Path: "/delegations/x?tab=timeline"}}
	third := shut.Gaps[2]
	href := p.gapHref(third, shut.Gaps)
	if href != "/delegations/x?gap="+third.Key+"&tab=timeline" {
		t.Errorf("one gap is opened at %s", href)
	}
	p.Path, p.Keep = href, url.Values{"gap": {third.Key}}
	one := newTimeline(rows, now, p.gapOpen)
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
	full := newTimeline(rows, now, p.gapOpen)
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
				from := now.Add(-time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, "from")))
				to := from.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Hour)).Draw(t, "length")))
				r.Spans = append(r.Spans, Span{rapid.SampledFrom(kinds).Draw(t, "kind"), from, to})
			}
			rows = append(rows, r)
		}
		tl := newTimeline(rows, now, func(string) bool { return rapid.Bool().Draw(t, "open") })
		for _, r := range rows {
			for _, b := range tl.bars(r, now) {
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

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		38 * time.Second: "38 s", 6*time.Minute + 12*time.Second: "6 min 12 s", 21 * time.Hour: "21 h", 71 * time.Hour: "2 d 23 h", 400 * time.Millisecond: "400 ms", 1200 * time.Millisecond: "1.2 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := shortID(taskID); got != "tsk_…7f3k9q" {
		t.Errorf("short id %q", got)
	}
	if got := (Usage{}).words(); got != "usage not reported" {
		t.Errorf("an unknown usage reads %q", got)
	}
	if got := (Usage{Reported: true, Tokens: 9400}).words(); got != "9.4k tokens · cost not reported" {
		t.Errorf("an unknown cost reads %q", got)
	}
	if got := thousands(-1234567); got != "−1,234,567" {
		t.Errorf("thousands %q", got)
	}
}

// Names are looked up, not tried; what they find is what the library finds.
func TestLexersAreFoundByName(t *testing.T) {
	for _, name := range []string{"a.go", "go.mod", "CMakeLists.txt", "notes.txt", "Makefile", "x.tar.gz", "Dockerfile", "Dockerfile.dev", "a.b.yaml", "index.html", "a.ts", "a.tsx",
		".bashrc", "x.unknown", "", "a.py", "a.rs", "lib.rb", "Gemfile", "x.sql", "x.c", "nginx.conf", "x.json", "x.md", "Jenkinsfile", "x.proto", "style.css", "x.sh", "x.php", "x.vue"} {
		want, got := lexers.Match(name), lexerOf("some/"+name)
		switch {
		case want == nil && got == nil:
		case want == nil || got == nil || want.Config().Name != got.Config().Name && priority(want) != priority(got):
			t.Errorf("%s: %v, the library finds %v", name, got, want)
		}
	}
}
