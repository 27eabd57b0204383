package agent

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// MaxName is the longest name of an agent in bytes; the shared context stores it
// in 64 (K21).
const MaxName = 64

// confusables maps letters that look like a Latin one to it. It covers the
// Cyrillic and Greek look-alikes that Unicode's confusables list has for the
// letters, digits and signs that a name may consist of.
var confusables = strings.NewReplacer(
	"а", "a", "в", "b", "с", "c", "ԁ", "d", "е", "e", "ɡ", "g", "һ", "h", "і", "i", "ӏ", "l", "ј", "j", "к", "k",
	"м", "m", "н", "h", "о", "o", "р", "p", "ԛ", "q", "ѕ", "s", "т", "t", "ս", "u", "ѵ", "v", "ԝ", "w", "х", "x", "у", "y",
	"α", "a", "β", "b", "ε", "e", "η", "n", "ι", "i", "κ", "k", "ν", "v", "ο", "o", "ρ", "p", "τ", "t", "υ", "u", "χ", "x", "γ", "y",
	"ı", "i", "ł", "l", "ø", "o", "0", "o", "1", "l", "|", "l",
)

// Key is the identity of a name: two names with one key are the same agent.
func Key(name string) string {
	// Fold alone would swap the cases of Cherokee instead of joining them.
	folded := norm.NFKC.String(strings.ToLower(cases.Fold().String(norm.NFKC.String(name))))
	var b strings.Builder
	for _, r := range folded {
		if !unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return confusables.Replace(strings.TrimSpace(b.String()))
}

// CheckName says whether a name can be given to an agent: letters, digits, dash,
// underscore and dot, starting with a letter or digit, at most MaxName bytes.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("agent name %q has %d bytes: use 1 to %d", name, len(name), MaxName)
	}
	for i, r := range name {
		ok := unicode.IsLetter(r) || unicode.IsDigit(r) || (i > 0 && strings.ContainsRune("-_.", r))
		if !ok {
			return fmt.Errorf("agent name %q: use letters, digits, - _ and ., starting with a letter or digit", name)
		}
	}
	return nil
}
