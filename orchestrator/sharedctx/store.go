package sharedctx

import (
	"context"
	"strings"
	"time"
)

// Store keeps entries. Reads never return what has expired and never delete it
// (K33); limits below 1 are the store's own.
type Store interface {
	// Set writes in one upsert: value, agent and expiry are replaced (K28, K29). It
	// returns the entry as it is kept, with the first CreatedAt.
	Set(ctx context.Context, e Entry) (Entry, error)
	// Extend writes as Set does, but where the entry exists its expiry only moves
	// forward, and one that never expires stays so (K39).
	Extend(ctx context.Context, e Entry) (Entry, error)
	Get(ctx context.Context, namespace, key string) (Entry, error) // K30
	// Prefix returns the entries of a namespace whose key begins with prefix, taken literally
	// (K41), newest UpdatedAt first; all of them where prefix is "" (K31).
	Prefix(ctx context.Context, namespace, prefix string, limit int) ([]Entry, error)
	// Delete removes an entry that can be read; its history stays.
	Delete(ctx context.Context, namespace, key string) error
	// Touch prolongs an entry as Entry.Touched does and leaves its value (K40).
	Touch(ctx context.Context, namespace, key string, ttl time.Duration) (Entry, error)
	// Cleanup removes what has expired by now and returns how many (K34), and the uses
	// of entries that are gone since KeepUses.
	Cleanup(ctx context.Context, now time.Time) (int, error)
	// Uses are who used an entry, newest first, with N < before (0: all). They are there
	// as well when the entry is gone.
	Uses(ctx context.Context, namespace, key string, before int64, limit int) ([]Use, error)
	// Topics are the namespaces that begin with prefix and have entries, by name, after
	// the name after.
	Topics(ctx context.Context, prefix, after string, limit int) ([]Topic, error)
}

// EscapeLike makes text literal inside a LIKE pattern with ESCAPE '\' (K41).
// SQLite's LIKE ignores the case of ASCII letters; compare the prefix itself too.
func EscapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}
