package views

import (
	"strings"
	"testing"

	"github.com/a-h/templ"
)

// TestHarmlessTextNeedsNoMark: the short way that most texts take shows the same as the
// long one, for every character that could need a mark.
func TestHarmlessTextNeedsNoMark(t *testing.T) {
	for r := rune(0); r < 0x3000; r++ {
		text := "a" + string(r) + "b"
		if !Harmless(text) {
			continue
		}
		if pieces := Pieces(text); len(pieces) != 1 || pieces[0].Risky || pieces[0].Text != text {
			t.Errorf("%q is called harmless and has %+v", text, pieces)
		}
	}
	for _, text := range []string{"\x7f", "a\rb", "\x00", "\x1b[31m", "\xff", "\u202e", "\u200b", "é"} {
		if Harmless(text) {
			t.Errorf("%q is called harmless", text)
		}
	}
}

// TestVisibleEscapes: markup is text on the short way and on the long one.
func TestVisibleEscapes(t *testing.T) {
	for _, text := range []string{`<script>alert("1")</script> & 'x'`, "<b>\u202e</b>"} {
		var b strings.Builder
		if err := Visible(text).Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.Contains(got, "<b>") || strings.Contains(got, "<script") {
			t.Errorf("%q is shown as %s", text, got)
		}
	}
	var b strings.Builder
	if err := Visible("a < b\tc").Render(t.Context(), &b); err != nil || b.String() != templ.EscapeString("a < b\tc") {
		t.Errorf("%v %s", err, b.String())
	}
}
