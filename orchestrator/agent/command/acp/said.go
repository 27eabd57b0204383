package acp

import (
	"encoding/json"
	"strings"

	"gatehouse/orchestrator/agent"
)

// said is what the program has said. A message ends where it calls a tool.
type said struct {
	segment int // number of the message, from 1
	message strings.Builder
	of      string            // the program's own id of it, "" where it has none
	last    string            // the newest whole message
	size    int64             // of all messages
	streams map[string]string // by kind: what is held back, since a secret may go on behind it
}

// hear takes a piece of a message, or of what the program thinks.
func (t *Dialogue) hear(kind string, block json.RawMessage) {
	text := strings.ReplaceAll(strings.ToValidUTF8(blockText(block), "\uFFFD"), "\x00", "\uFFFD")
	if text == "" {
		return
	}
	t.mu.Lock()
	t.size += int64(len(text))
	if t.size > t.Limit {
		t.mu.Unlock()
		t.fail(agent.Fail(agent.CodeOutput, "%s said more than %d bytes, which is its limit, and was ended. Let it say less, or raise its `output_limit`.", t.Program, t.Limit))
		return
	}
	if kind == agent.DeltaText {
		t.message.WriteString(text)
	}
	shown, turn := t.stream(kind, text), t.segment+1
	t.mu.Unlock()
	if shown != "" {
		t.Host.Delta(agent.Delta{Turn: turn, Kind: kind, Text: shown})
	}
}

// follow ends the message before where another one begins.
func (t *Dialogue) follow(id string) {
	t.mu.Lock()
	other := id != t.of
	t.of = id
	t.mu.Unlock()
	if other {
		t.cutSegment(false)
	}
}

// stream is what can be shown by now: the end of it is held back for as long as it may become
// a secret. The caller holds mu.
func (t *Dialogue) stream(kind, more string) string {
	if t.streams == nil {
		t.streams = map[string]string{}
	}
	held := t.streams[kind] + more
	end := len(held) - max(t.Secret-1, 0)
	for end > 0 && end < len(held) && held[end]&0xC0 == 0x80 { // inside a character
		end--
	}
	if end <= 0 || t.Safe(held[:end])+t.Safe(held[end:]) != t.Safe(held) {
		t.streams[kind] = held
		return ""
	}
	t.streams[kind] = held[end:]
	return t.Safe(held[:end])
}

// cutSegment ends the message that is being written, if there is one. What is not the last
// word of its turn is shown as progress.
func (t *Dialogue) cutSegment(last bool) {
	t.mu.Lock()
	text := strings.TrimSpace(t.message.String())
	t.message.Reset()
	turn, held := t.segment+1, t.streams
	t.streams = nil
	if text != "" {
		t.segment++
		t.last = t.Safe(text)
	}
	text = t.last
	ended := turn == t.segment
	t.mu.Unlock()
	for _, kind := range []string{agent.DeltaThinking, agent.DeltaText} {
		if rest := held[kind]; rest != "" {
			t.Host.Delta(agent.Delta{Turn: turn, Kind: kind, Text: t.Safe(rest)})
		}
	}
	if ended && !last {
		for line := range strings.Lines(text) {
			t.Say(line)
		}
	}
}

// answer is the newest message.
func (t *Dialogue) answer() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}
