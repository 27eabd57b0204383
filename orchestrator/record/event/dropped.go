package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

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
