package patch

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"gatehouse/orchestrator/mask"
)

// privateKey is a PEM or PGP private key with its body, also when it stands
// escaped in a string. A header alone, as programs that look for keys have it,
// is only worth a warning.
var privateKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----` +
		`(?:\s|\\n|\\r|["'+,]|[A-Za-z-]+: [^\n]*\n)+[A-Za-z0-9+/=]{16}(?:[A-Za-z0-9+/=]|\s|\\n|\\r|["'+,]){40}`)
})

// assigned is something that is called a password, key or token and gets a value; and the
// header of a private key. The shapes of tokens are package mask's.
var assigned = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY` +
	`|(?i:\b(?:password|passwd|secret|api_?key|access_?token|auth_?token)["']?\s*[:=]\s*["'][^"'\s$\{<]{10,}["'])`)

// assignedHints are the letters without one of which nothing matches assigned, in small.
// An expression takes a second for a line of some megabytes, and a search for letters does not.
var assignedHints = []string{"private key", "password", "passwd", "secret", "apikey", "api_key", "token"}

// secretLike reports whether a line of a file, of any length, has what mostly is a
// credential. It stays in the patch as it is: people approve bytes.
func secretLike(line string) bool {
	lower := strings.ToLower(line) // of letters that are not ASCII, an expression folds more
	hinted := strings.ContainsFunc(line, func(r rune) bool { return r > unicode.MaxASCII }) || slices.ContainsFunc(assignedHints, func(h string) bool { return strings.Contains(lower, h) })
	return hinted && assigned.MatchString(line) || mask.Has(line)
}

// countPrivateKeys counts the private keys in content.
func countPrivateKeys(content []byte) int {
	if !bytes.Contains(content, []byte("PRIVATE KEY")) {
		return 0
	}
	return len(privateKey().FindAllIndex(content, -1))
}
