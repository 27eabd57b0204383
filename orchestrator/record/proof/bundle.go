package proof

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"gatehouse/orchestrator/record/event"
)

// Scopes of a bundle.
const (
	WholeTasks = "tasks"  // every event of its tasks up to the newest is in it
	Filtered   = "filter" // what a filter chose: events may be left out
)

// MaxListed is how many tasks a seal lists at most. A bundle of more is covered by its sum,
// and has its checkpoints as lines between its events and its seal.
const MaxListed = 1000

// Versions of the seals that are written; seals without one are of version 1. Those of
// bundles with checkpoints as lines are streamed.
const (
	version  = 2
	streamed = 3
)

// Seal is the last line of a bundle: it covers every byte of the lines before it.
type Seal struct {
	Type      string    `json:"type"` // always "seal"
	Events    int       `json:"events"`
	SHA256    string    `json:"sha256"` // of all lines before, with their line feeds
	At        time.Time `json:"at"`
	Key       string    `json:"key"`       // Ed25519 public key, base64
	Signature string    `json:"signature"` // base64, over Text

	Version int      `json:"version,omitempty"`
	Scope   string   `json:"scope,omitempty"`
	Tasks   []Listed `json:"tasks,omitempty"` // by id; none where there are too many
	Proofs  []Proof  `json:"proofs,omitempty"`
	// Checkpoints is how many lines before the seal are checkpoints and not events.
	Checkpoints int `json:"checkpoints,omitempty"`
}

// checkpointLine is a checkpoint that stands in a line of its own.
type checkpointLine struct {
	Type string `json:"type"` // always "checkpoint"
	Proof
}

const checkpointType = "checkpoint"

// Listed is a task of a bundle.
type Listed struct {
	Head
	Events int `json:"events"` // of it in the bundle
}

// Proof is a checkpoint with all that is needed to check it.
type Proof struct {
	Checkpoint
	Key   []byte `json:"key"` // the Ed25519 public key that signed it
	Heads []Head `json:"heads"`
}

// Text is what the signature covers: from version 2 on the whole seal without it.
func (s Seal) Text() []byte {
	if s.Version == 0 {
		return []byte("gatehouse seal v1\n" + strconv.Itoa(s.Events) + "\n" + s.SHA256 + "\n" + s.At.UTC().Format(time.RFC3339Nano) + "\n")
	}
	s.Signature = ""
	line, err := json.Marshal(s)
	if err != nil { // a time outside of RFC 3339: nothing is signed like this
		return nil
	}
	return append([]byte("gatehouse seal v2\n"), line...)
}

// Writer writes a bundle as it gets its events. Its memory does not grow with their number.
type Writer struct {
	w      io.Writer
	scope  string
	sum    hash.Hash
	events int
	tasks  map[string]Listed
	many   bool // more tasks than are listed
	points int  // checkpoints that were written as lines
}

// NewWriter begins a bundle.
func NewWriter(w io.Writer, scope string) *Writer {
	return &Writer{w: w, scope: scope, sum: sha256.New(), tasks: map[string]Listed{}}
}

// Add writes one event. Those of a task have to come in their order.
func (b *Writer) Add(e event.Event) error {
	e.At = e.At.UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	b.events++
	if !b.many {
		b.tasks[e.TaskID] = Listed{Head: Head{e.TaskID, e.N, e.Hash}, Events: b.tasks[e.TaskID].Events + 1}
		if len(b.tasks) > MaxListed {
			b.many, b.tasks = true, nil
		}
	}
	return b.line(line)
}

// line writes one that the sum covers.
func (b *Writer) line(text []byte) error {
	text = append(text, '\n')
	b.sum.Write(text)
	_, err := b.w.Write(text)
	return err
}

// Many reports whether there are more tasks than are listed: checkpoints then have to be
// written by Checkpoint, after the last event.
func (b *Writer) Many() bool { return b.many }

// Checkpoint writes one as a line.
func (b *Writer) Checkpoint(p Proof) error {
	p.At = p.At.UTC()
	text, err := json.Marshal(checkpointLine{checkpointType, p})
	if err != nil {
		return err
	}
	b.points++
	return b.line(text)
}

// Events is how many were added.
func (b *Writer) Events() int { return b.events }

// Tasks are the ids of the tasks so far, sorted; none where there are too many to list.
func (b *Writer) Tasks() []string { return slices.Sorted(maps.Keys(b.tasks)) }

// Seal ends the bundle.
func (b *Writer) Seal(key ed25519.PrivateKey, at time.Time, proofs []Proof) error {
	s := Seal{Type: "seal", Version: version, Scope: b.scope, Events: b.events, SHA256: hex.EncodeToString(b.sum.Sum(nil)), At: at.UTC(), Proofs: proofs, Checkpoints: b.points}
	if b.points > 0 {
		s.Version = streamed
	}
	for _, id := range b.Tasks() {
		s.Tasks = append(s.Tasks, b.tasks[id])
	}
	for i := range s.Proofs {
		s.Proofs[i].At = s.Proofs[i].At.UTC()
	}
	line, err := s.sign(key)
	if err != nil {
		return err
	}
	_, err = b.w.Write(append(line, '\n'))
	return err
}

func (s Seal) sign(key ed25519.PrivateKey) ([]byte, error) {
	public, _ := key.Public().(ed25519.PublicKey) // a private key always has one
	s.Key = base64.StdEncoding.EncodeToString(public)
	s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, s.Text()))
	return json.Marshal(s)
}
