package textcut

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCharacters(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"abcd", 1, "…"}, {"…………", 4, "…………"},
		{"a\xffbc", 3, "a\xff…"}, {strings.Repeat("é", 10), 9, strings.Repeat("é", 8) + "…"},
	} {
		if got := Characters(tt.s, tt.n); got != tt.want {
			t.Errorf("%q in %d characters is %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		head string
		all  bool
	}{
		{"", 0, "", true}, {"abc", 3, "abc", true}, {"abcd", 3, "abc", false}, {"aö", 2, "a", false}, {"ö", 1, "", false}, {"abc", 0, "", false},
		{"a😀", 4, "a", false}, {strings.Repeat("\x80", 20), 10, strings.Repeat("\x80", 6), false},
	} {
		if head, all := Bytes(tt.s, tt.n); head != tt.head || all != tt.all {
			t.Errorf("%q in %d bytes is %q, %v, want %q, %v", tt.s, tt.n, head, all, tt.head, tt.all)
		}
	}
	if got := Brief("aöb", 2); got != "a…" {
		t.Errorf("brief is %q", got)
	}
}

func FuzzCuts(f *testing.F) {
	f.Add("aö😀", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 1 || n > 1<<20 {
			return
		}
		if got := Characters(s, n); utf8.RuneCountInString(got) > n {
			t.Errorf("%q has more than %d characters", got, n)
		}
		if head, all := Bytes(s, n); len(head) > n || !strings.HasPrefix(s, head) || all != (head == s) || utf8.ValidString(s) && !utf8.ValidString(head) {
			t.Errorf("%q is no beginning of %q in %d bytes", head, s, n)
		}
	})
}
