package review

import (
	"testing"
)

// A form sends every line end as CRLF, and a file keeps its own.
func TestAnEditedFileKeepsItsLineEnds(t *testing.T) {
	for _, c := range []struct{ name, old, typed, want string }{
		{"unix", "a\nb\n", "a\r\nB\r\n", "a\nB\n"},
		{"windows", "a\r\nb\r\n", "a\r\nB\r\n", "a\r\nB\r\n"},
		{"no line feed at the end", "a\nb", "a\r\nb", "a\nb"},
		{"windows, none at the end", "a\r\nb", "a\r\nb\r\nc", "a\r\nb\r\nc"},
		{"nothing typed", "a\nb\n", "", ""},
		{"one line, without any", "a", "b\r\nc", "b\nc"},
		{"both, unchanged", "a\r\nb\nc\r\n", "a\r\nb\r\nc\r\n", "a\r\nb\nc\r\n"},
		{"both, a line more", "a\r\nb\nc\r\n", "a\r\nb\r\nnew\r\nc\r\n", "a\r\nb\nnew\r\nc\r\n"},
		{"both, the same line twice", "x\nx\r\ny\n", "x\r\nx\r\ny\r\n", "x\nx\r\ny\n"},
		{"both, the last line goes on", "a\r\nb\nc", "a\r\nb\r\nc\r\nd", "a\r\nb\nc\nd"},
	} {
		if got := endings(c.old, c.typed); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// A form leads back to the page that it was on, and to nothing else.
func TestAPlaceKeepsOnlyThePagesOwnQuery(t *testing.T) {
	for query, want := range map[string]string{
		"rev=2&view=split&done=edit&part=head": "rev=2&view=split",
		"page=3&find=%22%3E%3Cb%3E":            "find=%22%3E%3Cb%3E&page=3",
		"//evil.example":                       "",
		"%zz":                                  "",
	} {
		if got := placeOf(query); got != want {
			t.Errorf("%s: %q", query, got)
		}
	}
}

func TestAHitIsCutToWhatStandsAroundIt(t *testing.T) {
	if got := around("short line", 6, 4); got != "short line" {
		t.Errorf("%q", got)
	}
	long := make([]byte, 5000)
	for i := range long {
		long[i] = 'x'
	}
	copy(long[3000:], "needle")
	got := around(string(long), 3000, 6)
	if len(got) > 180 || got[:3] != "…" || got[len(got)-3:] != "…" {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
