package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"

	"gatehouse/handlers/api"
	"gatehouse/orchestrator/event"
)

// maxBundleLine is above the largest event.
const maxBundleLine = 32 << 20

// verifyBundle checks what was exported, without any database: every event by its own
// hash, neighbours of a task by their chain, and all bytes by the seal at the end. An
// export with a filter may begin in the middle of a task and leave events out; that
// none is missing beyond that is what the seal says.
func verifyBundle(in io.Reader) (audited, error) {
	b := bundleReader{tasks: map[string]event.Event{}, sum: sha256.New()}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxBundleLine)
	var last []byte // the newest line, which may be the seal
	for lines.Scan() {
		if last != nil {
			b.event(last)
		}
		last = bytes.Clone(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		return b.found, fmt.Errorf("read the bundle: %w", err)
	}
	b.seal(last)
	b.found.Tasks, b.found.Events = len(b.tasks), b.events
	return b.found, nil
}

type bundleReader struct {
	found  audited
	tasks  map[string]event.Event // the newest event of each
	sum    hash.Hash
	events int
}

func (b *bundleReader) problem(id, task, format string, args ...any) {
	b.found.Problems = append(b.found.Problems, broken{ID: id, TaskID: task, Message: fmt.Sprintf(format, args...)})
}

// event checks one line that is not the last.
func (b *bundleReader) event(text []byte) {
	b.events++
	_, _ = b.sum.Write(append(text, '\n')) // a hash takes everything
	var e event.Event
	if err := json.Unmarshal(text, &e); err != nil || e.ID == "" {
		b.problem("", "", "line %d is no event", b.events)
		return
	}
	before, known := b.tasks[e.TaskID]
	prev := e.PrevHash
	if known && e.N == before.N+1 {
		prev = before.Hash
	}
	switch {
	case known && e.N <= before.N:
		b.problem(e.ID, e.TaskID, "event %s (n %d) comes after n %d of the same task: the order was changed", e.ID, e.N, before.N)
	case e.Verify(prev) != nil:
		b.problem(e.ID, e.TaskID, "%v", e.Verify(prev))
	}
	b.tasks[e.TaskID] = e
}

// seal checks the last line against all before it.
func (b *bundleReader) seal(text []byte) {
	var s api.Seal
	if text == nil || json.Unmarshal(text, &s) != nil || s.Type != "seal" {
		b.problem("", "", "the last line is no seal: the end was cut off, or this is no bundle")
		return
	}
	key, err := base64.StdEncoding.DecodeString(s.Key)
	signature, err2 := base64.StdEncoding.DecodeString(s.Signature)
	fingerprint := sha256.Sum256(key)
	b.found.Seals, b.found.Key = 1, hex.EncodeToString(fingerprint[:8])
	switch {
	case err != nil || err2 != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, s.SealText(), signature):
		b.problem("", "", "the signature of the seal is wrong: the seal was changed")
	case s.Events != b.events:
		b.problem("", "", "the seal counts %d events and the bundle has %d", s.Events, b.events)
	case s.SHA256 != hex.EncodeToString(b.sum.Sum(nil)):
		b.problem("", "", "the bundle is not what was sealed: a line was changed")
	}
}
