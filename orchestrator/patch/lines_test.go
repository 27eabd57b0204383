package patch

import (
	"strings"
	"testing"
	"testing/iotest"
)

func TestLinesAreCountedAsPeopleCountThem(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2, strings.Repeat("x\n", 50_000) + "y": 50_001} {
		for name, r := range map[string]int{"whole": 0, "in pieces": 1} {
			in := strings.NewReader(text)
			got, err := countLines(in)
			if r == 1 {
				got, err = countLines(iotest.HalfReader(strings.NewReader(text)))
			}
			if err != nil || got != want {
				t.Errorf("%.10q %s: %d (%v), want %d", text, name, got, err, want)
			}
		}
	}
}
