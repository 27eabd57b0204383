// Package event is the one log that everything is a view of: the event type, its
// hash, and the hub that tells watchers about new events.
//
// kinds.go lists all types; a type, its payload and its sentence stand in of_*.go, by subject.
//
// The room imports the standard library and origin.
package event

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

type Type string

// System is the stream of acts that belong to no task, such as signing in.
const System = "system"

// Event is one immutable fact. N counts from 1 within the task without gaps.
type Event struct {
	TaskID       string          `json:"task_id"`
	N            int64           `json:"n,omitempty"`
	ID           string          `json:"id,omitempty"`
	Type         Type            `json:"type"`
	DelegationID string          `json:"delegation_id,omitempty"`
	Actor        string          `json:"actor"`
	At           time.Time       `json:"at"`
	Data         json.RawMessage `json:"data"`
	// PrevHash and Hash chain the events of a task; lower-case hex SHA-256.
	PrevHash string `json:"prev_hash,omitempty"`
	Hash     string `json:"hash,omitempty"`
	// Dropped stands in for the data that retention removed; Data is {} then.
	Dropped *Dropped `json:"dropped,omitempty"`
}

// Data encodes data that no struct of this version says, for tests that write what other
// versions wrote. Object keys come out sorted. Programs append the struct of a type; see Of.
func Data(v map[string]any) json.RawMessage {
	if v == nil {
		return json.RawMessage("{}")
	}
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"unencodable": err.Error()})
	}
	return b
}

// Seal sets PrevHash and Hash. The hash covers SHA-256 of the data and not the
// data itself, so that retention may drop data and the history still verifies.
func (e *Event) Seal(prev string) {
	e.PrevHash = prev
	e.Hash = e.digest()
}

// Verify reports whether e is intact and follows the event whose hash is prev.
func (e *Event) Verify(prev string) error {
	if e.PrevHash != prev {
		return fmt.Errorf("event %s (%s n %d) does not follow the one before it: an event was removed, added or moved", e.ID, e.TaskID, e.N)
	}
	if e.Dropped != nil && string(e.Data) != empty {
		return fmt.Errorf("event %s (%s n %d) has data although it says that its data was dropped", e.ID, e.TaskID, e.N)
	}
	if e.Hash != e.digest() {
		return fmt.Errorf("event %s (%s n %d) was changed after it was written", e.ID, e.TaskID, e.N)
	}
	return nil
}

// digest hashes every field with its length in front, so that no two events
// can be written as the same bytes.
func (e *Event) digest() string {
	h := sha256.New()
	data := e.dataSum()
	put := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	put([]byte(e.PrevHash))
	put([]byte(e.TaskID))
	put(binary.BigEndian.AppendUint64(nil, uint64(e.N)))
	put([]byte(e.ID))
	put([]byte(e.Type))
	put([]byte(e.DelegationID))
	put([]byte(e.Actor))
	put(binary.BigEndian.AppendUint64(nil, uint64(e.At.UnixMicro())))
	put(data)
	return hex.EncodeToString(h.Sum(nil))
}

// Dropped is what stays of an event's data when retention has removed it: the hash that
// the chain covers, so that the history still verifies.
type Dropped struct {
	SHA256 string    `json:"sha256"` // of the data as it was, lower-case hex
	At     time.Time `json:"at"`
}

// empty is the data of an event whose data was dropped.
const empty = "{}"

// The text that is stored in place of dropped data is a JSON string, which no event's own
// data is: that is always an object. It begins with DroppedMark. The database lets data be
// replaced by this and by nothing else. The time has 16 digits from 2001 to 2286.
const (
	DroppedMark = `"dropped sha256:`
	droppedLen  = len(DroppedMark) + 64 + len(" ") + 16 + len(`"`)
)

// DropData is what is stored in place of data.
func DropData(data string, at time.Time) string {
	sum := sha256.Sum256([]byte(data))
	return DroppedMark + hex.EncodeToString(sum[:]) + " " + strconv.FormatInt(at.UnixMicro(), 10) + `"`
}

// SetStored takes the data as it is stored, which may be what stands in its place.
func (e *Event) SetStored(text string) {
	if len(text) == droppedLen && strings.HasPrefix(text, DroppedMark) {
		sum, rest, _ := strings.Cut(text[len(DroppedMark):], " ")
		if at, err := strconv.ParseInt(strings.TrimSuffix(rest, `"`), 10, 64); err == nil {
			e.Data, e.Dropped = json.RawMessage(empty), &Dropped{SHA256: sum, At: time.UnixMicro(at).UTC()}
			return
		}
	}
	e.Data, e.Dropped = json.RawMessage(text), nil
}

// dataSum is SHA-256 of the data, or what was kept of it. A kept sum that is none fits
// no hash.
func (e *Event) dataSum() []byte {
	if e.Dropped == nil {
		sum := sha256.Sum256(e.Data)
		return sum[:]
	}
	sum, err := hex.DecodeString(e.Dropped.SHA256)
	if err != nil || len(sum) != sha256.Size || strings.ToLower(e.Dropped.SHA256) != e.Dropped.SHA256 {
		return nil
	}
	return sum
}
