package diff

import (
	"strings"
	"testing"
)

func TestOnlyWhitespaceIsMarked(t *testing.T) {
	for _, c := range []struct{ name, diff, want string }{
		{"an indent", "-a\n+\ta", "ss"},
		{"a change beside it", "-a\n-b\n+ a\n+c", "s.s."},
		{"an empty line", " x\n+\n y", ".s."},
		{"spaces at the end, and a new line before", "-a\n+new\n+a  ", "s.s"},
		{"another order is a change", "-a\n-b\n+ b\n+ a", "s..s"},
		{"other words", "-a\n+b", ".."},
	} {
		var raw []RawLine
		for _, l := range strings.Split(c.diff, "\n") {
			raw = append(raw, RawLine{Op: Op(l[0]), Text: l[1:]})
		}
		got := ""
		for _, l := range NewHunk("x", 0, "", raw).Lines {
			if l.Space {
				got += "s"
			} else {
				got += "."
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
