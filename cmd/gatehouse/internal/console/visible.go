package console

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/orchestrator/spelling"
	"gatehouse/orchestrator/textcut"
)

// Block makes foreign text safe for a terminal: what is invisible, turns the reading
// direction, controls the terminal or poses as another character becomes a visible code
// point. Lines stay.
func Block(s string) string {
	var b strings.Builder
	posing := spelling.Deceptive(s)
	for i := 0; i < len(s); {
		r, width := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			fmt.Fprintf(&b, "⟦0x%02X⟧", s[i])
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
			b.WriteString("⟦U+000D⟧")
		case risky(r), len(posing) > 0 && posing[0] == i:
			fmt.Fprintf(&b, "⟦U+%04X⟧", r)
		default:
			b.WriteString(s[i : i+width])
		}
		for len(posing) > 0 && posing[0] <= i {
			posing = posing[1:]
		}
		i += width
	}
	return b.String()
}

// risky says that a character must not reach a terminal as itself. Tab and line feed may.
func risky(r rune) bool {
	switch {
	case r == '\t' || r == '\n':
		return false
	case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
		return true
	case unicode.Is(unicode.Zs, r):
		return r != ' ' && r != 0xA0
	case unicode.Is(unicode.Variation_Selector, r):
		return r != 0xFE0F // chooses the coloured form of an emoji
	}
	switch r {
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0x2800: // drawn as nothing
		return true
	}
	return r >= 0xE0000 && r <= 0xE0FFF
}

// Line is block on one line.
func Line[S ~string](s S) string { return strings.Join(strings.Fields(Block(string(s))), " ") }

// Brief is the first line of s that says something, at most that many characters.
func Brief[S ~string](s S, most int) string {
	for l := range strings.Lines(string(s)) {
		if l = Line(l); l == "" {
			continue
		}
		return textcut.Characters(l, most)
	}
	return ""
}

// AsciiWriter writes for locales without UTF-8: our own signs get the plain form of
// ui.md. JSON is left alone.
type AsciiWriter struct {
	To   io.Writer
	json bool
}

var plain = strings.NewReplacer("○", ".", "●", ">", "⧗", "~", "◆", "?", "⇥", ">", "✓", "+", "✕", "x", "⊖", "-", "↩", "<",
	"⌛", "e", "■", "c", "⧉", "s", "⊘", "!", "→", "->", "←", "<-", "·", "-", "−", "-", "…", "...", "⚠", "!",
	"├─", "|-", "└─", "`-", "│", "|", "⟦", "<", "⟧", ">", "“", "\"", "”", "\"", "–", "-")

// Write replaces and writes; it reports the length that it was given.
func (w AsciiWriter) Write(p []byte) (int, error) {
	if w.json {
		return w.To.Write(p)
	}
	if _, err := plain.WriteString(w.To, string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
