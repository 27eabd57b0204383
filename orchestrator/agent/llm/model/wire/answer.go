package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// MaxBlocks is how many blocks one answer may have; a model that calls more tools at
// once is broken.
const MaxBlocks = 1024

// maxTokens is more than any model can use in one call; a larger figure is an error.
const maxTokens = 1 << 40

// Call makes the block of a tool call. What is no JSON object becomes an empty one, with
// what the model wrote beside it, so that the model can be told.
func Call(id, name, input string) agent.Block {
	b := agent.Block{Type: agent.CallBlock, ID: id, Name: name, Input: json.RawMessage("{}")}
	trimmed := strings.TrimSpace(input)
	switch {
	case trimmed == "":
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		b.Input = json.RawMessage(trimmed)
	default:
		b.IsError, b.Text = true, strings.ToValidUTF8(input, "�")
	}
	return b
}

// Object returns input when it is a JSON object, else an empty one.
func Object(input json.RawMessage) json.RawMessage {
	if t := bytes.TrimSpace(input); len(t) > 0 && t[0] == '{' && json.Valid(t) {
		return t
	}
	return json.RawMessage("{}")
}

var plainID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)

// CallID makes an id that every provider takes: the same one of the same id.
func CallID(id string) string {
	if plainID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// Tokens are a provider's figures of one call. Input does not hold the cached ones.
type Tokens struct{ Input, CacheRead, CacheWritten, Output int64 }

// possible reports whether a model can have used t.
func (t Tokens) possible() bool {
	return !slices.ContainsFunc([]int64{t.Input, t.CacheRead, t.CacheWritten, t.Output}, func(n int64) bool {
		return n < 0 || n > maxTokens
	})
}

// Usage is t as usage, nothing when it is impossible.
func (t Tokens) Usage() agent.Usage {
	if !t.possible() {
		return agent.Usage{}
	}
	return agent.Usage{InputTokens: t.Input + t.CacheRead + t.CacheWritten, OutputTokens: t.Output}
}

// Count puts the provider's figures into r. Impossible ones count as not reported.
func (t Tokens) Count(r *model.Response, reported bool) {
	if !reported || !t.possible() {
		return
	}
	r.Reported, r.Usage, r.CacheRead, r.CacheWritten = true, t.Usage(), t.CacheRead, t.CacheWritten
}

// Stop is why the model stopped: one that called tools waits for their results, whatever
// it said.
func Stop(said string, m agent.Message) string {
	if said == model.StopEnd && len(m.Calls()) > 0 {
		return model.StopTools
	}
	return said
}

// Decode reads JSON as it comes from services that are only nearly compatible: a value of the
// wrong type is left out, and the rest of the object is read. Only what is no JSON is an error.
func Decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Text is a string. What came in its place is kept as it was written: a number as an id, an
// object as the arguments of a call.
type Text string

// UnmarshalJSON makes a Text a json.Unmarshaler.
func (t *Text) UnmarshalJSON(raw []byte) error {
	var s string
	switch {
	case string(raw) == "null":
	case raw[0] != '"':
		*t = Text(raw)
	case json.Unmarshal(raw, &s) == nil:
		*t = Text(s)
	}
	return nil
}

// Number is a whole number; fractions are cut off, and a string with a number in it is one.
type Number struct {
	N     int64
	Given bool // it came, and was a number
}

// UnmarshalJSON makes a Number a json.Unmarshaler.
func (n *Number) UnmarshalJSON(raw []byte) error {
	var text Text
	if err := text.UnmarshalJSON(raw); err != nil {
		return err
	}
	if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*n = Number{N: whole, Given: true}
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64) // one out of range is infinite
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) {
		return nil
	}
	*n = Number{N: int64(max(-1<<62, min(f, 1<<62))), Given: true}
	return nil
}
