package patch

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/spelling"
)

// What can be risky about a character; the same words as the warnings.
const (
	RiskBidi      = "bidi"
	RiskInvisible = "invisible"
	RiskControl   = "control_chars"
	RiskLookalike = "lookalike"
)

// Visible splits a line of text into plain pieces and risky ones. A risky piece
// shows code points in place of what they would do to the reader: ⟦U+202E⟧,
// and ⟦0xFF⟧ for a byte that is no UTF-8. So does a letter that poses as a Latin one.
// A tab is plain. Pieces put together are safe to print.
func Visible(s string) []Piece {
	var pieces []Piece
	plain := 0
	flush := func(end int) {
		if end > plain {
			pieces = append(pieces, Piece{Text: s[plain:end]})
		}
	}
	posing := spelling.Deceptive(s)
	prev := rune(0)
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		risk, shown := "", ""
		if c == utf8.RuneError && n == 1 {
			risk, shown = RiskControl, fmt.Sprintf("⟦0x%02X⟧", s[i])
		} else {
			next, _ := utf8.DecodeRuneInString(s[i+n:]) // RuneError at the end
			risk = riskOf(c, prev, next)
			if len(posing) > 0 && posing[0] == i {
				risk, posing = RiskLookalike, posing[1:]
			}
		}
		if risk != "" && shown == "" {
			shown = fmt.Sprintf("⟦U+%04X⟧", c)
		}
		if risk != "" {
			flush(i)
			pieces = append(pieces, Piece{Text: shown, Risk: risk})
			plain = i + n
		}
		prev = c
		i += n
	}
	flush(len(s))
	return pieces
}

// Shown is Visible in one text, for sentences, logs and terminals.
func Shown(s string) string {
	var b strings.Builder
	for _, p := range Visible(s) {
		b.WriteString(p.Text)
	}
	return b.String()
}

// riskOf says what a character may do to the reader; prev and next are those beside it.
func riskOf(c, prev, next rune) string {
	switch {
	case c == '\t':
		return ""
	case c < 0x20, c >= 0x7f && c < 0xa0:
		return RiskControl
	case c < 0xa0:
		return ""
	case blank(c) && inCode(c, prev, next):
		return RiskInvisible
	case c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069, c == 0x200e, c == 0x200f, c == 0x061c:
		return RiskBidi
	case c == 0xfe0f && isPictograph(prev):
		return "" // colours an emoji, once
	case c == 0x200d && (isPictograph(prev) || prev == 0xfe0f) && isPictograph(next):
		return "" // joins two
	case invisible(c):
		return RiskInvisible
	}
	return ""
}

func isPictograph(c rune) bool {
	return c >= 0x2190 && c <= 0x2bff || c >= 0x1f000 && c <= 0x1faff || c == 0x20e3 || c == 0x00a9 || c == 0x00ae
}

// blank: drawn as a blank, and none to a compiler, a shell or a configuration's reader.
func blank(c rune) bool {
	return c == 0x00a0 || c == 0x1680 || c >= 0x2000 && c <= 0x200a || c == 0x202f || c == 0x205f || c == 0x3000
}

// inCode reports whether a blank stands where a plain one would in code: beside ASCII, or
// at the end of a line. In prose of other scripts, before a French mark and within a number it is
// what a writer means.
func inCode(c, prev, next rune) bool {
	plain := func(c rune) bool { return c < utf8.RuneSelf || c == utf8.RuneError || blank(c) }
	digit := func(c rune) bool { return c >= '0' && c <= '9' }
	letter := prev >= 'a' && prev <= 'z' || prev >= 'A' && prev <= 'Z'
	french := (c == 0x00a0 || c == 0x202f) && ((letter || digit(prev)) && strings.ContainsRune(":;!?%", next) || digit(prev) && digit(next))
	return plain(prev) && plain(next) && !french
}

// invisible: drawn as nothing, or as a blank that is none.
func invisible(c rune) bool {
	switch {
	case c == 0x00ad, c == 0x034f, c == 0x115f, c == 0x1160, c == 0x17b4, c == 0x17b5, c == 0x3164, c == 0xffa0,
		c == 0xfeff, c == 0x2800, c == 0x2028, c == 0x2029,
		c >= 0x180b && c <= 0x180f, c >= 0x200b && c <= 0x200d, c >= 0x2060 && c <= 0x2064, c >= 0x206a && c <= 0x206f,
		c >= 0xfe00 && c <= 0xfe0f, c >= 0xfff0 && c <= 0xfffb, c >= 0x1d173 && c <= 0x1d17a, c >= 0xe0000 && c <= 0xe0fff:
		return true
	}
	return false
}

// lookalike reports whether a text has a letter or a mark that poses as another one.
func lookalike(s string) bool { return len(spelling.Deceptive(s)) > 0 }
