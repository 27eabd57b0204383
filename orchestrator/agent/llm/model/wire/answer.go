package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
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
	for _, n := range []int64{t.Input, t.CacheRead, t.CacheWritten, t.Output} {
		if n < 0 || n > maxTokens {
			return false
		}
	}
	return true
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
