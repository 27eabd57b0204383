// Package signin knows who comes in: passwords, one-time links, sessions, API tokens
// and run tokens. Secrets are random and only their hashes are stored; passwords are
// hashed with argon2id. Its pages ask for a password or use a link up.
//
// The cookie belongs to web's server as much as to this package: web asks Caller for
// every request, and the pages ask Password, Link, Open and Close.
package signin

import (
	"gatehouse/handlers"
)

// Pages has the pages of signing in and out.
type Pages struct{ *handlers.Site }
