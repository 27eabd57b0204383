package agent

import (
	"slices"
	"strings"
)

// secretEndings mark variables that never leave the server by an allow-list; an
// agent that needs one is given it by name, under `env`.
var secretEndings = []string{"TOKEN", "KEY", "KEYS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "DATABASE_URL", "_DSN"}

// LooksSecret reports whether a variable of this name is taken for a secret: its value is
// kept out of texts, and out of programs that were not given it by name.
func LooksSecret(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(upper, "GATEHOUSE_") ||
		slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(upper, end) })
}
