package nearest

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"coder", "cdoer", 2},
		{"coder", "codr", 1}, {"Coder", "coder", 1}, {"größe", "grösse", 2}, {"a", "b", 1},
		{strings.Repeat("a", 1<<20), strings.Repeat("a", 1<<20) + "b", 0},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("from %.20q to %.20q are %d changes, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := Distance(tt.b, tt.a); got != tt.want {
			t.Errorf("from %.20q to %.20q are %d changes, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestWithin(t *testing.T) {
	names := []string{"coder", "coders", "reviewer", "go"}
	for _, tt := range []struct {
		word    string
		changes int
		want    string
	}{
		{"codr", 2, "coder"}, {"codes", 2, "coder"}, {"coderz", 1, "coder"}, {"coderss", 1, "coders"}, {"reviwer", 1, "reviewer"},
		{"reviwer", 0, ""}, {"planner", 3, ""}, {"go", 0, "go"}, {"", 1, ""}, {strings.Repeat("x", 1<<20), 2, ""},
	} {
		if got := Within(tt.word, names, tt.changes); got != tt.want {
			t.Errorf("nearest to %.20q within %d is %q, want %q", tt.word, tt.changes, got, tt.want)
		}
	}
}
