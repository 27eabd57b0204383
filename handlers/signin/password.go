package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Argon2id with OWASP's first recommendation: 19 MiB, 2 passes, 1 lane.
const (
	argonMemory = 19 * 1024 // KiB
	argonPasses = 2
	argonLanes  = 1
	argonSalt   = 16 // bytes
	argonKey    = 32 // bytes
)

// Limits of a password. Long ones are refused because hashing them costs time.
const (
	minPassword = 8   // characters
	maxPassword = 512 // bytes
)

// HashPassword hashes a password for storage, in the usual $argon2id$ form.
func HashPassword(password string) (string, error) {
	if utf8.RuneCountInString(password) < minPassword || len(password) > maxPassword {
		return "", fmt.Errorf("a password has %d characters or more and %d bytes at most", minPassword, maxPassword)
	}
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails
	return encodeHash(salt, argon2.IDKey([]byte(password), salt, argonPasses, argonMemory, argonLanes, argonKey)), nil
}

func encodeHash(salt, key []byte) string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonPasses, argonLanes, b64(salt), b64(key))
}

// passwords checks passwords, a few at a time: each check takes 19 MiB.
type passwords struct {
	slots chan struct{}
	dummy string // the hash that an unknown name is checked against
}

// newPasswords makes the dummy of random bytes: a real hash would take 19 MiB and 30 ms
// of every start, and checking against this one takes as long.
func newPasswords() *passwords {
	salt, key := make([]byte, argonSalt), make([]byte, argonKey)
	_, _ = rand.Read(salt) // never fails
	_, _ = rand.Read(key)
	return &passwords{slots: make(chan struct{}, 4), dummy: encodeHash(salt, key)}
}

// verify reports whether the password belongs to the hash. An empty hash takes as
// long as a wrong password, so that nobody learns which names exist.
func (p *passwords) verify(ctx context.Context, hash, password string) bool {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return false
	}
	if len(password) > maxPassword {
		return false
	}
	known := hash != ""
	if !known {
		hash = p.dummy
	}
	return matches(hash, password) && known
}

// matches compares in constant time. The parameters are the hash's own, so that they
// can be raised later; they are bounded, because the database is not to be trusted
// with the server's memory.
func matches(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	var version int
	var memory, passes uint32
	var lanes uint8
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return false
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes); err != nil {
		return false
	}
	salt, errSalt := base64.RawStdEncoding.DecodeString(parts[4])
	want, errKey := base64.RawStdEncoding.DecodeString(parts[5])
	if errSalt != nil || errKey != nil || len(want) < 16 || len(want) > 128 || memory > 256*1024 || passes < 1 || passes > 16 || lanes < 1 {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, passes, memory, lanes, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}
