package telegram

import (
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// units is the length of s as Telegram counts: in UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// head is the longest beginning of s with at most limit units.
func head(s string, limit int) string {
	n := 0
	for i, r := range s {
		n++
		if r > 0xffff {
			n++
		}
		if n > limit {
			return s[:i]
		}
	}
	return s
}

// tail is the longest end of s with at most limit units.
func tail(s string, limit int) string {
	n := 0
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		n++
		if r > 0xffff {
			n++
		}
		if n > limit {
			return s[i:]
		}
		i -= size
	}
	return s
}

const ellipsis = "…"

// joiners join or colour the character beside them, which would be the ellipsis.
const joiners = "\u200d\ufe0f"

// cut shortens s to at most limit units.
func cut(s string, limit int) string {
	if units(s) <= limit {
		return s
	}
	return strings.TrimRight(head(s, limit-1), " "+joiners) + ellipsis
}

// cutMiddle shortens s to at most limit units and keeps both ends: of a path these
// say most.
func cutMiddle(s string, limit int) string {
	if units(s) <= limit {
		return s
	}
	left := (limit - 1) / 2
	return strings.TrimRight(head(s, left), joiners) + ellipsis + strings.TrimLeft(tail(s, limit-1-left), joiners)
}

// longest is how many bytes of a foreign text are looked at from each of its ends:
// far more than any limit here, far less than an agent may write.
const longest = 4 << 10

func clip(s string) string {
	if len(s) <= 2*longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + strings.ToValidUTF8(s[len(s)-longest:], "")
}

// oneLine is foreign text as one line that does nothing to the reader: what cannot be
// seen is shown as code points, and what looks like a secret is masked.
func oneLine(s string) string {
	return patch.Shown(strings.Join(strings.Fields(mask.Text(clip(s))), " "))
}

// pathLine is a path as one line, with every character that it has.
func pathLine(s string) string {
	return strings.ReplaceAll(patch.Shown(clip(s)), "\t", "⟦U+0009⟧")
}

// The kinds of entities that are used. Telegram makes links, mentions and commands of
// plain text by itself, but not inside of code: so foreign text is code.
const (
	asCode = "code"
	asPre  = "pre"
	asBold = "bold"
)

// sheet is a text with its entities while it is written.
type sheet struct {
	text     strings.Builder
	n        int // units
	entities []tgbotapi.MessageEntity
}

// put writes plain text.
func (s *sheet) put(parts ...string) {
	for _, p := range parts {
		s.text.WriteString(p)
		s.n += units(p)
	}
}

// as writes text as an entity.
func (s *sheet) as(kind, text string) {
	if strings.TrimSpace(text) != "" {
		s.entities = append(s.entities, tgbotapi.MessageEntity{Type: kind, Offset: s.n, Length: units(text)})
	}
	s.put(text)
}

// mention writes a name as a link to an account, whom it then notifies.
func (s *sheet) mention(name string, account int64) {
	s.entities = append(s.entities, tgbotapi.MessageEntity{Type: "text_mention", Offset: s.n, Length: units(name), User: &tgbotapi.User{ID: account, FirstName: name}})
	s.put(name)
}

// line begins a new line, but for the first one.
func (s *sheet) line(parts ...string) {
	if s.n > 0 {
		s.put("\n")
	}
	s.put(parts...)
}

func (s *sheet) message(rows ...[]Button) Message {
	return Message{Text: s.text.String(), Entities: s.entities, Rows: rows}
}
