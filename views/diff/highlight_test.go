package diff

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2/lexers"
	"pgregory.net/rapid"
)

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
	for _, r := range SplitRows(lines) {
		s := ""
		if r.Left != nil {
			s += Number(r.Left.Old)
		}
		s += "|"
		if r.Right != nil {
			s += Number(r.Right.New)
		}
		got = append(got, s)
	}
	if want := "1|1 2|2 3| 4|3 |4"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
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
