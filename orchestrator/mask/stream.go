package mask

import (
	"regexp"
	"strings"
)

// mostHeld bounds what a Stream keeps back, in bytes: the longest key is shorter.
const mostHeld = 16 << 10

// A word of more than longWord bytes that has begun like no secret is shown but for its
// end, which may be the beginning of one: no anchor stands further in than longest bytes.
const (
	longWord = 512
	longest  = 40
)

// Stream masks a text that comes in pieces. What could still become a secret is kept back:
// the word that is being written, and a private key until its end. The zero value is ready
// to use; it is not safe for concurrent use.
type Stream struct{ held string }

// Write takes the next piece and returns what can be shown by now.
func (s *Stream) Write(piece string) string {
	all := s.held + piece
	from := open(all)
	switch held := len(all) - from; {
	case held > mostHeld:
		from = len(all)
	case held > longWord && !near([]byte(all[from:])): // secrets say near their beginning what they are
		from = len(all) - longest
	}
	s.held = all[from:]
	return Text(all[:from])
}

// Flush returns what was kept back; the text ends there.
func (s *Stream) Flush() string {
	rest := Text(s.held)
	s.held = ""
	return rest
}

// Holds reports whether something is kept back.
func (s *Stream) Holds() bool { return s.held != "" }

// named is a secret that only what stands before it gives away, so far.
var named = regexp.MustCompile(`(?i)secret_?-?access_?-?key[\\"'\s]*(?:[:=][\\"'\s]*[a-z0-9/+=]*)?$`)

// began is a key without its end.
const began, ended = "-----BEGIN", "-----END"

// open is where the part begins that more text could make a secret of.
func open(text string) int {
	from := len(text)
	for from > 0 && inWord(text[from-1]) {
		from--
	}
	if i := strings.LastIndex(text, began); i >= 0 && !closed(text[i:]) {
		from = min(from, i)
	}
	if m := named.FindStringIndex(text[max(0, len(text)-200):]); m != nil {
		from = min(from, max(0, len(text)-200)+m[0])
	}
	return from
}

// closed reports whether a text that begins with began has the end of a key and of the
// word behind it, or is no key.
func closed(text string) bool {
	head, _, _ := strings.Cut(text[len(began):], "-----")
	if len(head) > 60 || strings.Contains(head, "\n") || head != strings.ToUpper(head) {
		return true // no header
	}
	if strings.Contains(text[len(began):], "-----") && !strings.Contains(head, "PRIVATE KEY") {
		return true // a certificate, say
	}
	_, end, _ := strings.Cut(text, ended)
	_, behind, found := strings.Cut(end, "-----")
	return found && strings.ContainsFunc(behind, func(r rune) bool { return r > 0x7f || !inWord(byte(r)) })
}

// inWord: the characters that secrets consist of.
func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-+/=.:@%~!&?;", c) >= 0
}
