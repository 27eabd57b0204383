package patch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/mask"
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

// WarnLineEndings: the lines of a file end in another way than they did, or a carriage
// return stands within one, where a terminal begins the line again and hides what came
// before.
const WarnLineEndings = "line_endings"

// endings is how the lines of a text end.
type endings struct{ lf, crlf, lone int }

// countEndings counts the line feeds alone, those behind a carriage return, and the
// carriage returns before anything else.
func countEndings(content []byte) (e endings) {
	for i, c := range content {
		switch {
		case c == '\r' && (i+1 == len(content) || content[i+1] != '\n'):
			e.lone++
		case c == '\n' && i > 0 && content[i-1] == '\r':
			e.crlf++
		case c == '\n':
			e.lf++
		}
	}
	return e
}

// differ reports whether a text with the endings e became one that people should look
// at: it has a kind of ending that it had not, lost all of its carriage returns, or has
// more of them within lines. A new file may have either kind, but not both.
func (e endings) differ(after endings, isNew bool) bool {
	switch {
	case after.lone > e.lone:
		return true
	case isNew:
		return after.lf > 0 && after.crlf > 0
	case e.lf+e.crlf == 0 || after.lf+after.crlf == 0: // nothing to compare with
		return after.lf > 0 && after.crlf > 0
	}
	return after.crlf > 0 && e.crlf == 0 || after.lf > 0 && e.lf == 0 || after.crlf == 0 && e.crlf > 0
}

// scanEndings compares the line endings of the files that have a carriage return in or
// beside a change, as whole contents.
func (r *Mirror) scanEndings(ctx context.Context, files []File, s *scanned) error {
	var ids []string
	var of []*File
	for i := range files {
		f := &files[i]
		if !s.cr[f.Path] || f.Binary || f.NewBlob == "" || f.NewMode == modeLink || f.NewMode == modeGit {
			continue
		}
		if old := f.OldBlob; old != "" && f.OldMode != modeLink && f.OldMode != modeGit {
			ids, of = append(ids, old), append(of, f)
		}
		ids, of = append(ids, f.NewBlob), append(of, f)
	}
	before := map[*File]endings{}
	return r.blobs(ctx, ids, func(i int, _ int64, in io.Reader) error {
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		found := countEndings(bytes.TrimSuffix(content, []byte("\x1a"))) // DOS ends a text with it
		f := of[i]
		if ids[i] == f.OldBlob && (i+1 < len(of) && of[i+1] == f) {
			before[f] = found
			return nil
		}
		was, known := before[f]
		if was.differ(found, !known) {
			s.add(f.Path, WarnLineEndings)
		}
		return nil
	})
}

// TextRisks lists what may deceive the reader of a text of several lines, each kind
// once: the same words as the warnings, in their order.
func TextRisks(text string) []string {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for _, p := range Visible(line) {
			found[p.Risk] = found[p.Risk] || p.Risk != ""
		}
		found[RiskLookalike] = found[RiskLookalike] || lookalike(line)
	}
	order := []string{RiskBidi, RiskInvisible, RiskLookalike, RiskControl}
	return slices.DeleteFunc(order, func(code string) bool { return !found[code] })
}

// How much of a change is shown at once. These bounds have one owner, because two rooms
// must mean the same by them: a page that cuts, and the warning that says so. What goes
// beyond one of them makes a request careful.
const (
	// MaxColumns is how many bytes of one line are drawn at once: a minified file must
	// not freeze a phone. The rest is reached by links.
	MaxColumns = 4000
	// MaxLines is how many changed lines are shown in one piece; a longer change is cut
	// into pages.
	MaxLines = 3000
	// CardFiles, CardLines and CardBytes are what a card of the chat shows whole: changed
	// files, changed lines, and bytes of these lines. It is about three screens of a phone.
	CardFiles = 8
	CardLines = 60
	CardBytes = 4000
)

// LongLine reports whether a line is cut where it is drawn. A carriage return at its end
// is shown apart.
func LongLine(text string) bool { return len(strings.TrimSuffix(text, "\r")) > MaxColumns }

// SecretLike is the code of what looks like a password, key or token.
const SecretLike = "secret_like"

// TextSecret reports whether a text looks as if it held a password, key or token: in one of
// its lines, or over several.
func TextSecret(text string) bool {
	for line := range strings.Lines(text) {
		if secretLike(strings.TrimRight(line, "\r\n")) {
			return true
		}
	}
	return mask.Has(text)
}

// TooLarge reports whether a file's lines are not shown at all, because it is larger than
// what is compared.
func (f File) TooLarge() bool {
	return !f.Binary && max(f.OldSize, f.NewSize) > maxShown
}

// Moved reports whether the file came with its content from another place.
func (f File) Moved() bool { return f.Status == Renamed || f.Status == Copied }
