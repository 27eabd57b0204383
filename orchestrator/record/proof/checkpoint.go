package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"time"
)

// Checkpoint seals the order over all tasks up to Pos. Heads is the hash over the newest
// event of each task that has one after the checkpoint before; Prev is that one's Digest.
type Checkpoint struct {
	Pos       int64     `json:"pos"`
	Prev      string    `json:"prev"`
	Heads     string    `json:"heads_hash"`
	At        time.Time `json:"at"`
	KeyID     string    `json:"key_id"`
	Signature []byte    `json:"signature"` // over Message
}

// Message is what is signed: every field with its length in front.
func (c Checkpoint) Message() []byte {
	var b bytes.Buffer
	field(&b, []byte("gatehouse checkpoint 1"))
	field(&b, binary.BigEndian.AppendUint64(nil, uint64(c.Pos)))
	field(&b, []byte(c.Prev))
	field(&b, []byte(c.Heads))
	field(&b, binary.BigEndian.AppendUint64(nil, uint64(c.At.UnixMicro())))
	return b.Bytes()
}

// Digest names the checkpoint; the next one is chained to it.
func (c Checkpoint) Digest() string {
	sum := sha256.Sum256(c.Message())
	return hex.EncodeToString(sum[:])
}

// Head is the newest event of a task that a checkpoint covers, or that a bundle has.
type Head struct {
	TaskID string `json:"task_id"`
	N      int64  `json:"n"`
	Hash   string `json:"hash"`
}

// Heads adds heads up, in the order of the tasks' ids, to what a checkpoint signs.
type Heads struct{ sum hash.Hash }

// NewHeads begins with none.
func NewHeads() Heads { return Heads{sha256.New()} }

func (h Heads) Add(head Head) {
	field(h.sum, []byte(head.TaskID))
	field(h.sum, binary.BigEndian.AppendUint64(nil, uint64(head.N)))
	field(h.sum, []byte(head.Hash))
}

// Sum is the hash over all that were added, lower-case hex.
func (h Heads) Sum() string { return hex.EncodeToString(h.sum.Sum(nil)) }

// field writes b with its length in front. The writers here never fail.
func field(w io.Writer, b []byte) {
	_, _ = w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	_, _ = w.Write(b)
}

// Fingerprint names a public key: the first 16 hex digits of its SHA-256.
func Fingerprint(key ed25519.PublicKey) string { return fullFingerprint(key)[:16] }

func fullFingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// Key is a key that seals, as the installation knows it.
type Key struct {
	ID     string            `json:"id"` // its Fingerprint
	Public ed25519.PublicKey `json:"key"`
	Node   string            `json:"node"`
	At     time.Time         `json:"at"` // when it was first seen
}

// Verification is what verifying the whole history found once.
type Verification struct {
	ID       string        `json:"id"`
	Who      string        `json:"who"`
	At       time.Time     `json:"at"`   // when it began
	Took     time.Duration `json:"took"` // nanoseconds
	Pos      int64         `json:"pos"`  // newest position when it began
	Tasks    int           `json:"tasks"`
	Seals    int           `json:"seals"`
	Problems []Broken      `json:"problems"` // at most MaxProblems
}

// OK reports whether everything fitted.
func (v Verification) OK() bool { return len(v.Problems) == 0 }

// Broken is one thing that does not fit.
type Broken struct {
	TaskID  string `json:"task_id"` // "" where it is not about one task
	Message string `json:"message"`
}

// MaxProblems keeps an answer readable when everything is broken.
const MaxProblems = 100

// Progress is how far a verification has come.
type Progress struct {
	Tasks    int   `json:"tasks"` // checked
	Of       int   `json:"of"`    // about; tasks come while it runs
	Events   int64 `json:"events"`
	OfEvents int64 `json:"of_events"` // about, too
	Seals    int   `json:"seals"`     // checked; they come after the tasks
}
