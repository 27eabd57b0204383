package proof

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// seal checks the last line against all before it.
func (b *reader) seal(text []byte) {
	if b.rows > 0 && len(b.tasks) == 0 { // that rows are no events is not worth a word
		b.found.Problems, b.found.More = b.file, 0
	}
	var s Seal
	switch scope, ok := sealScope(text); {
	case !ok:
		b.problem(0, "", "", "the last line is no seal: the end was cut off, or this is no sealed export (a CSV file has no seal)")
		return
	case scope == Selected:
		b.selection(text)
		return
	case json.Unmarshal(text, &s) != nil:
		b.problem(0, "", "", "the signature of the seal is wrong: the seal was changed")
		return
	}
	b.found.Version, b.found.Scope, b.found.At = max(s.Version, 1), s.Scope, s.At
	if s.Version != 0 && s.Version != version && s.Version != streamed {
		b.problem(0, "", "", "the seal is of version %d, which a newer gatehouse writes: verify the bundle with that one", s.Version)
		return
	}
	// What says the same in other bytes was changed, too.
	again, err := json.Marshal(s)
	if !b.signed(s.Key, s.Signature, s.Text(), err == nil && bytes.Equal(again, text)) {
		return
	}
	sound := len(b.found.Problems) == 0
	if sum := hex.EncodeToString(b.sum.Sum(nil)); s.Events != b.events || s.Checkpoints != b.points || s.SHA256 != sum {
		if s.Events != b.events {
			b.problem(0, "", "", "the seal counts %d events and the bundle has %d", s.Events, b.events)
		} else {
			b.problem(0, "", "", "the bundle is not what was sealed: a line was changed")
		}
		if sound {
			b.explain(s)
		}
		return
	}
	if s.Scope == WholeTasks {
		b.take(b.gaps)
	}
	b.listed(s)
	for _, p := range s.Proofs {
		b.proof(p, s.Scope == WholeTasks)
	}
}

// sealScope reads of a line whether it is a seal, and of what.
func sealScope(text []byte) (scope string, ok bool) {
	var s struct{ Type, Scope string }
	err := json.Unmarshal(text, &s)
	var other *json.UnmarshalTypeError // a seal with a number as its scope is a changed one
	return s.Scope, (err == nil || errors.As(err, &other)) && s.Type == "seal"
}

// signed checks the signature, by a key that is allowed; exact says that the seal is
// written as it was signed.
func (b *reader) signed(sealKey, sealSignature string, text []byte, exact bool) bool {
	key, err := base64.StdEncoding.Strict().DecodeString(sealKey)
	signature, err2 := base64.StdEncoding.Strict().DecodeString(sealSignature)
	if err != nil || err2 != nil || !exact || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, text, signature) {
		b.problem(0, "", "", "the signature of the seal is wrong: the seal was changed")
		return false
	}
	b.found.Key = Fingerprint(key)
	if !b.allowed(key) {
		b.problem(0, "", "", "the bundle was sealed by the key %s, which is none of those that were named: somebody else made it, or made it anew", b.found.Key)
		return false
	}
	return true
}

// allowed reports whether a key is one of those that were named.
func (b *reader) allowed(key []byte) bool {
	full := fullFingerprint(key)
	for _, k := range b.keys {
		if len(k) >= 16 && strings.HasPrefix(full, strings.ToLower(k)) {
			return true
		}
	}
	return len(b.keys) == 0
}

// explain names the lines that make the sum wrong, where every line is sound in itself.
func (b *reader) explain(s Seal) {
	b.take(b.odd)
	if s.Events > b.events {
		b.take(b.gaps)
	}
	b.listed(s)
}

func (b *reader) take(list []Problem) {
	for _, p := range list {
		b.problem(p.Line, p.ID, p.TaskID, "%s", p.Message)
	}
}

// listed checks the tasks against those that the seal lists.
func (b *reader) listed(s Seal) {
	if len(s.Tasks) == 0 {
		return
	}
	known := map[string]bool{}
	for _, want := range s.Tasks {
		known[want.TaskID] = true
		t := b.tasks[want.TaskID]
		switch {
		case t == nil:
			b.problem(0, "", want.TaskID, "the task %s was sealed and is not in the bundle", want.TaskID)
		case t.last.N < want.N:
			b.problem(0, t.last.ID, want.TaskID, "the end of %s is missing: its last event here is %s (n %d), and n %d was sealed", want.TaskID, t.last.ID, t.last.N, want.N)
		case t.events != want.Events:
			b.problem(0, "", want.TaskID, "the seal counts %d events of %s and the bundle has %d", want.Events, want.TaskID, t.events)
		case t.last.N != want.N || t.last.Hash != want.Hash:
			b.problem(0, t.last.ID, want.TaskID, "the last event of %s, %s, is not the one that was sealed", want.TaskID, t.last.ID)
		}
	}
	for id, t := range b.tasks {
		if !known[id] {
			b.problem(t.line, "", id, "line %d: the task %s is not one of those that were sealed: its events were added", t.line, id)
		}
	}
}

// proof holds the tasks against a checkpoint; whole says that no event of theirs may be missing.
func (b *reader) proof(p Proof, whole bool) {
	day := p.At.UTC().Format(time.RFC3339)
	sum := NewHeads()
	for _, h := range p.Heads {
		sum.Add(h)
	}
	switch {
	case len(p.Key) != ed25519.PublicKeySize || Fingerprint(p.Key) != p.KeyID || !ed25519.Verify(p.Key, p.Message(), p.Signature):
		b.problem(0, "", "", "the signature of the checkpoint at position %d (%s) is wrong", p.Pos, day)
		return
	case !b.allowed(p.Key):
		b.problem(0, "", "", "the checkpoint at position %d was signed by the key %s, which is none of those that were named", p.Pos, p.KeyID)
		return
	case sum.Sum() != p.Checkpoint.Heads:
		b.problem(0, "", "", "the heads under the checkpoint at position %d (%s) are not those that it signs", p.Pos, day)
		return
	}
	for _, h := range p.Heads {
		if t := b.tasks[h.TaskID]; t != nil && b.covers(whole, t, h, day) && !t.covered {
			t.covered = true
			b.found.Covered++
		}
	}
}

// checkpoint reads a line that is one; false: it is none.
func (b *reader) checkpoint(text []byte) bool {
	var c checkpointLine
	if !bytes.HasPrefix(text, []byte(`{"type":"`+checkpointType+`"`)) || json.Unmarshal(text, &c) != nil {
		return false
	}
	b.events--
	b.points++
	b.proof(c.Proof, false)
	return true
}

// covers checks one task against what a checkpoint knows of it.
func (b *reader) covers(whole bool, t *task, h Head, day string) bool {
	if whole && t.last.N < h.N {
		b.problem(0, t.last.ID, h.TaskID, "the end of %s was cut off before the export: the last event is %s (n %d), and the checkpoint of %s knows n %d", h.TaskID, t.last.ID, t.last.N, day, h.N)
		return false
	}
	hash, here := t.hashes[h.N]
	if !here && t.last.N == h.N {
		hash, here = t.last.Hash, true
	}
	if here && hash != h.Hash {
		b.problem(0, "", h.TaskID, "n %d of %s is not the event that the checkpoint of %s sealed: the history was written anew", h.N, h.TaskID, day)
	}
	return here && hash == h.Hash
}
