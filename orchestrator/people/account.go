package people

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"gatehouse/orchestrator/origin"
)

// Account is an account of a channel that belongs to a person. It is known by the
// channel's numeric id alone; Name is how it was called when it was linked, and gives
// no right: names change hands.
type Account struct {
	Channel  origin.Channel `json:"channel"`
	ID       int64          `json:"id"`
	UserID   string         `json:"user_id"`
	Name     string         `json:"name"`
	LinkedAt time.Time      `json:"linked_at"`
}

// LinkCode is a one-time code that links an account; the store holds its hash.
type LinkCode struct {
	Hash      string
	Channel   origin.Channel
	UserID    string
	ExpiresAt time.Time
	UsedAt    *time.Time
}

// The figures of link codes. A code has 60 random bits: with five guesses in ten
// minutes none is ever found.
const (
	LinkCodeLife  = 10 * time.Minute // how long one works (contract)
	MaxLinkCodes  = 5                // open ones of one person
	MaxGuesses    = 5                // wrong codes of one account within GuessWindow
	GuessWindow   = 10 * time.Minute // and how long further ones are refused then
	linkCodeChars = 12
)

// crockford is Crockford's base32: digits and letters without I, L, O and U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewLinkCode makes a code that a person can type, and its hash.
func NewLinkCode() (code, hash string) {
	var b [linkCodeChars]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime stops the program instead
	for i := range b {
		b[i] = crockford[b[i]%byte(len(crockford))] // 256 is a multiple of 32: no letter is likelier
	}
	return string(b[:]), HashLinkCode(string(b[:]))
}

// HashLinkCode is the hash under which a code is stored. It reads a typed code as
// Crockford meant it: case, dashes and blanks do not count, O is 0, I and L are 1.
func HashLinkCode(code string) string {
	code = strings.NewReplacer("O", "0", "I", "1", "L", "1", "-", "", " ", "").Replace(strings.ToUpper(strings.TrimSpace(code)))
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
