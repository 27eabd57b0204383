package agent

import (
	"fmt"
	"strings"
	"unicode"

	"gatehouse/orchestrator/spelling"

	"golang.org/x/text/unicode/norm"
)

// MaxName is the longest name of an agent in bytes; the shared context stores it
// in 64 (K21).
const MaxName = 64

// digits maps what names are also told apart by, and readers are not: 0 and o, 1 and l.
var digits = strings.NewReplacer("0", "o", "1", "l", "|", "l")

// Key is the identity of a name: two names with one key are the same agent.
func Key(name string) string {
	return digits.Replace(strings.TrimSpace(spelling.Skeleton(name)))
}

// CheckName says whether a name can be given to an agent: letters, digits, dash,
// underscore and dot, starting with a letter or digit, at most MaxName bytes.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("agent name %q has %d bytes: use 1 to %d", name, len(name), MaxName)
	}
	for i, r := range name {
		if ok := unicode.IsLetter(r) || unicode.IsDigit(r) || (i > 0 && strings.ContainsRune("-_.", r)); !ok {
			return fmt.Errorf("agent name %q: use letters, digits, - _ and ., starting with a letter or digit", name)
		}
	}
	return nil
}

// reserved are names that a reader would take for somebody who is no agent.
var reserved = []string{"system", "user", "human", "admin", "gatehouse", "rule"}

// reads is a name as a hurried reader sees it: its Key without accents, and without the
// separators around it.
func reads(name string) string {
	bare := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case strings.ContainsRune("-_.", r):
			return '-'
		}
		return r
	}, norm.NFD.String(Key(name)))
	return strings.Trim(Key(bare), "-")
}
