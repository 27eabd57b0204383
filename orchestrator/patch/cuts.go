package patch

import (
	"strings"

	"gatehouse/orchestrator/mask"
)

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
