package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// What a secret begins with, so that people and scanners recognise it.
const (
	TokenPrefix   = "gth_" // API tokens
	sessionPrefix = "gts_"
	linkPrefix    = "gtl_"
)

// NewSecret makes a random secret of 256 bits with a prefix, and its hash. Only the
// hash is ever stored.
func NewSecret(prefix string) (secret, hash string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime stops the program instead
	secret = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, HashSecret(secret)
}

// NewToken makes an API token and its hash.
func NewToken() (token, hash string) { return NewSecret(TokenPrefix) }

// NewLinkCode makes the code of a one-time sign-in link and its hash.
func NewLinkCode() (code, hash string) { return NewSecret(linkPrefix) }

// HashSecret is the SHA-256 of a secret in lower-case hex. Secrets are random, so a
// slow hash would add nothing; passwords have one (password.go).
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
