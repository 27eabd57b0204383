package views

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/spelling"
)

// piece is a run of plain text, or one character that a reader could not see.
type piece struct {
	Text  string
	Risky bool // Text is the code point: U+202E
	Title string
}

// Pieces splits foreign text at every character that is invisible, turns the
// reading direction, controls a terminal or poses as another one. Tab and newline pass.
func Pieces(s string) []piece { return VisiblePart(s, 0, spelling.Deceptive(s)) }

// VisiblePart is visible for a part of a text that begins at a byte of it; posing are the
// bytes of the whole text where letters begin that pose as others.
func VisiblePart(s string, from int, posing []int) []piece {
	var out []piece
	start := 0
	for i, r := range s {
		name, bad := risky(r)
		if _, poses := slices.BinarySearch(posing, from+i); poses && !bad {
			name, bad = "looks like a letter or mark of ASCII and is another", true
		}
		if r == unicode.ReplacementChar && !strings.HasPrefix(s[i:], "\uFFFD") {
			// A byte that is no UTF-8: its value is what counts.
			name, bad = "byte that is not UTF-8", true
		}
		if !bad {
			continue
		}
		if i > start {
			out = append(out, piece{Text: s[start:i]})
		}
		width := len(string(r))
		text := fmt.Sprintf("U+%04X", r)
		if name == "byte that is not UTF-8" {
			width, text = 1, fmt.Sprintf("0x%02X", s[i])
		}
		out = append(out, piece{Text: text, Risky: true, Title: name})
		start = i + width
	}
	if start < len(s) {
		out = append(out, piece{Text: s[start:]})
	}
	return out
}

// Harmless reports whether nothing of a text needs a mark: nearly all texts have nothing but
// the printable characters of ASCII, and a page has hundreds of them.
func Harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\t' && c != '\n' {
			return false
		}
	}
	return true
}

// BranchName is a branch as people read it: git lets names have characters that nobody sees.
func BranchName(name string) string { return VisibleText(OneLine(name, 200)) }

// VisibleText is foreign text for an attribute, where no element can mark what a reader
// could not see: it stands in brackets, as in the terminal.
func VisibleText(s string) string {
	s = mask.Text(s)
	if Harmless(s) {
		return s
	}
	var b strings.Builder
	for _, p := range Pieces(s) {
		if p.Risky {
			p.Text = "⟦" + p.Text + "⟧"
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// risky names a character that must not be shown as itself.
func risky(r rune) (string, bool) {
	switch {
	case r == '\t' || r == '\n':
		return "", false
	case r == '\r':
		return "carriage return", true
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200E, r == 0x200F, r == 0x061C:
		return "changes the direction of text", true
	case r == 0x00AD, r == 0x034F, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r == 0x2800:
		return "invisible character", true
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r) && r != 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF:
		return "invisible character", true
	case unicode.IsControl(r):
		return "control character", true
	case r == 0x2028 || r == 0x2029:
		return "line or paragraph separator", true
	case unicode.Is(unicode.Zs, r) && r != ' ' && r != 0xA0:
		return "unusual space", true
	case unicode.Is(unicode.Co, r):
		return "private character", true
	}
	return "", false
}

// OneLine makes foreign text fit a row: the first line with content, cut at most runes.
func OneLine(s string, most int) string {
	s = mask.Text(s) // before the cut
	for line := range strings.Lines(s) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		runes := []rune(line)
		if len(runes) > most {
			return string(runes[:most-1]) + "…"
		}
		return line
	}
	return ""
}

// Middle cuts a path in the middle, where it says least.
func Middle(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	head := most/2 - 1
	return string(runes[:head]) + "…" + string(runes[len(runes)-(most-head-1):])
}

// pathShown is how much of a path a line of text has room for, in characters.
const pathShown = 80

// ShortPath is a path for a sentence: a long one is cut in the middle.
func ShortPath(path string) string { return Middle(path, pathShown) }

// LongPath reports whether a path is shown cut.
func LongPath(path string) bool { return utf8.RuneCountInString(path) > pathShown }
