package change

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

// What Lines says leads from one text to the other, names each line's number on both sides,
// and keeps as much as stays.
func TestTheLinesBetweenTwoTexts(t *testing.T) {
	split := func(s string) []string { return strings.Split(s, "") }
	for _, c := range []struct{ from, to, want string }{
		{"abc", "abc", " a b c"},
		{"abc", "axc", " a-b+x c"},
		{"", "", " "},
		{"abc", "", "-a-b-c+"},
		{"xabcy", "xbcdy", " x-a b c+d y"},
		{"aXbXc", "aYbYc", " a-X+Y b-X+Y c"},
	} {
		from, to := split(c.from), split(c.to)
		if c.from == "" {
			from = []string{""}
		}
		if c.to == "" {
			to = []string{""}
		}
		got := Lines(from, to)
		var b strings.Builder
		for _, l := range got {
			b.WriteByte(l.Kind)
			b.WriteString(l.Text)
		}
		if b.String() != c.want {
			t.Errorf("%q to %q: %q, want %q", c.from, c.to, b.String(), c.want)
		}
		leads(t, from, to, got)
	}
	long := slices.Repeat([]string{"a", "b"}, 2000)
	other := slices.Repeat([]string{"c", "d"}, 2000)
	leads(t, long, other, Lines(long, other))
	leads(t, nil, []string{"a"}, Lines(nil, []string{"a"}))
}

func leads(t *testing.T, from, to []string, lines []patch.Line) {
	t.Helper()
	var was, now []string
	for _, l := range lines {
		if l.Kind != '+' {
			if was = append(was, l.Text); l.Old != len(was) {
				t.Fatalf("line %+v is the %d. of the old text", l, len(was))
			}
		}
		if l.Kind != '-' {
			if now = append(now, l.Text); l.New != len(now) {
				t.Fatalf("line %+v is the %d. of the new text", l, len(now))
			}
		}
	}
	if !slices.Equal(was, from) || !slices.Equal(now, to) {
		t.Errorf("%d and %d lines lead elsewhere", len(from), len(to))
	}
}
