package sharedctx

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/orchestrator/textcut"
)

// The limits of an entry. Names are counted in characters, as the columns are
// (K18, K19, K21); the value in bytes, and its limit is ours.
const (
	MaxNamespace = 64
	MaxKey       = 128
	MaxAgent     = 64
	MaxValue     = 256 << 10
)

// Entry is one value of the shared context; (Namespace, Key) is its identity (K25).
type Entry struct {
	Namespace string     `json:"namespace"`
	Key       string     `json:"key"`
	Value     string     `json:"value"`
	Agent     string     `json:"agent"`      // who wrote it last (K21)
	Scope     string     `json:"scope"`      // who it is for: task or house (P2), as its namespace says
	ExpiresAt *time.Time `json:"expires_at"` // nil: never (K22)
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"` // refreshed on every write (K24)
}

// New makes an entry that is written now. A ttl of 0 never expires, also where the
// entry that it replaces would have (K29). The store keeps an older CreatedAt.
func New(now time.Time, namespace, key, value, agent string, ttl time.Duration) (Entry, error) {
	if ttl < 0 || ttl > MaxTTL {
		return Entry{}, fmt.Errorf("a life span of %s: use 1 second to 100 years, or none for a value that stays", ttl)
	}
	e := Entry{Namespace: namespace, Key: key, Value: value, Agent: agent, Scope: ScopeOf(namespace), CreatedAt: now.UTC(), UpdatedAt: now.UTC()}
	if ttl > 0 {
		e.ExpiresAt = new(now.UTC().Add(ttl))
	}
	return e, e.Check()
}

// At is the entry as if it had been written at that time: what is written inside a
// transaction is as old as that is, so that the last write is the newest.
func (e Entry) At(now time.Time) Entry {
	if e.ExpiresAt != nil {
		e.ExpiresAt = new(now.UTC().Add(e.ExpiresAt.Sub(e.UpdatedAt)))
	}
	e.CreatedAt, e.UpdatedAt = now.UTC(), now.UTC()
	return e
}

// Check says what is wrong with an entry's names or value, which may come from an
// agent. Databases refuse NULs and broken UTF-8 with errors that nobody can read.
func (e Entry) Check() error {
	for _, f := range []struct {
		what, name string
		most       int
	}{{"namespace", e.Namespace, MaxNamespace}, {"key", e.Key, MaxKey}, {"agent", e.Agent, MaxAgent}} {
		if err := checkName(f.what, f.name, f.most); err != nil {
			return err
		}
	}
	switch {
	case len(e.Value) > MaxValue:
		return fmt.Errorf("the value has %d bytes and %d are the limit: store a shorter one, or a reference to a file", len(e.Value), MaxValue)
	case !utf8.ValidString(e.Value):
		return fmt.Errorf("the value is not UTF-8: encode it first, for example as base64")
	case strings.ContainsRune(e.Value, 0):
		return fmt.Errorf("the value contains a NUL character: encode it first, for example as base64")
	}
	return nil
}

func checkName(what, name string, most int) error {
	switch n := utf8.RuneCountInString(name); {
	case strings.TrimSpace(name) == "":
		return fmt.Errorf("the %s is empty: give it 1 to %d characters", what, most)
	case n > most:
		return fmt.Errorf("the %s has %d characters and %d are the limit: shorten it", what, n, most)
	case !utf8.ValidString(name):
		return fmt.Errorf("the %s is not UTF-8: use printable characters", what)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the %s %q has control or invisible characters: use printable ones", what, name)
	}
	return nil
}

// Expired reports whether the entry is not to be read any more (K33).
func (e Entry) Expired(now time.Time) bool { return e.ExpiresAt != nil && !e.ExpiresAt.After(now) }

// Touched is the entry after somebody read it again (K40, K43): it lives ttl from
// now on (0 means ExtensionTTL), but never shorter than before; what never expires
// stays so. It reports false for an entry that has expired: reading does not revive.
func (e Entry) Touched(now time.Time, ttl time.Duration) (Entry, bool) {
	if e.Expired(now) {
		return e, false
	}
	ttl = cmp.Or(max(ttl, 0), ExtensionTTL)
	if at := now.UTC().Add(ttl); e.ExpiresAt != nil && at.After(*e.ExpiresAt) {
		e.ExpiresAt = &at
	}
	e.UpdatedAt = now.UTC()
	return e, true
}

// Decode reads a value that is JSON (K42).
func (e Entry) Decode(into any) error {
	if err := json.Unmarshal([]byte(e.Value), into); err != nil {
		return fmt.Errorf("the value of %s/%s is not the JSON that was expected: %w", e.Namespace, e.Key, err)
	}
	return nil
}

// Merge joins the answers of several namespace queries into what an agent is given
// (K27, K32): each entry once, unexpired, newest first, at most limit (0: all).
func Merge(now time.Time, limit int, lists ...[]Entry) []Entry {
	type id struct{ namespace, key string }
	newest := map[id]Entry{}
	for _, list := range lists {
		for _, e := range list {
			at := id{e.Namespace, e.Key}
			if old, ok := newest[at]; !e.Expired(now) && (!ok || e.UpdatedAt.After(old.UpdatedAt)) {
				newest[at] = e
			}
		}
	}
	merged := make([]Entry, 0, len(newest))
	for _, e := range newest {
		merged = append(merged, e)
	}
	slices.SortFunc(merged, func(a, b Entry) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Key, b.Key))
	})
	if limit > 0 && len(merged) > limit {
		merged = merged[:limit]
	}
	return merged
}

// Given is an entry as an agent is given it at the start of a run.
type Given struct {
	Entry
	Whole int // bytes of the whole value where Value was cut; else 0
}

// least is how much of a value is always kept, in bytes.
const least = 256

// Fit makes entries, newest first, fit into so many bytes of values: the largest are cut
// first, all to the same length, so that one long value does not push out many short
// ones. When even that is too much, the oldest are left out.
func Fit(entries []Entry, bytes int) []Given {
	entries = entries[:min(len(entries), max(1, bytes/least))]
	most := shortest(entries, bytes)
	given := make([]Given, len(entries))
	for i, e := range entries {
		given[i].Entry = e
		if len(e.Value) > most {
			given[i].Whole = len(e.Value)
			given[i].Value, _ = textcut.Bytes(e.Value, most)
		}
	}
	return given
}

// shortest is the length to which values are cut so that they fit: short values leave what
// they do not need to the long ones.
func shortest(entries []Entry, bytes int) int {
	lengths := make([]int, len(entries))
	for i, e := range entries {
		lengths[i] = len(e.Value)
	}
	slices.Sort(lengths)
	for i, n := range lengths {
		share := bytes / (len(lengths) - i)
		if n > share {
			return share
		}
		bytes -= n
	}
	return MaxValue
}

// Kind is what somebody did with an entry.
type Kind string

// The kinds of a Use.
const (
	Read   Kind = "read"
	Write  Kind = "write"
	Touch  Kind = "touch"
	Delete Kind = "delete"
)

// Use is one use of an entry: who read, wrote, touched or deleted it, and for which
// work. Reads are those of agents, and a delegation's reads of one entry are one use;
// what people look at is not kept.
type Use struct {
	N            int64     `json:"n"` // the order of uses; the cursor of History
	Namespace    string    `json:"namespace"`
	Key          string    `json:"key"`
	Kind         Kind      `json:"kind"`
	Agent        string    `json:"agent"`         // the agent or person
	DelegationID string    `json:"delegation_id"` // "" for people
	TaskID       string    `json:"task_id"`
	At           time.Time `json:"at"`
}

// KeepUses is how long the uses of an entry that is gone are kept.
const KeepUses = 90 * day

// Topic is one namespace with what is in it now.
type Topic struct {
	Namespace string    `json:"namespace"`
	Entries   int       `json:"entries"`
	UpdatedAt time.Time `json:"updated_at"` // of its newest entry
}
