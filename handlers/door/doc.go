// Package door knows who comes in: passwords, one-time links, sessions, API tokens
// and run tokens. Secrets are random and only their hashes are stored; passwords are
// hashed with argon2id.
//
// The cookie belongs to web's server as much as to this package: web asks Caller for
// every request, and the sign-in pages ask Password, Link, Open and Close.
package door
