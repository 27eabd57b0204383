package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/handlers/api"
	"gatehouse/orchestrator/event"
)

// bundleOf makes a bundle of two tasks with n events each, sealed.
func bundleOf(t *testing.T, n int) []string {
	t.Helper()
	var lines []string
	last := map[string]string{}
	for i := range n {
		for _, task := range []string{"tsk_a", "tsk_b"} {
			e := event.Event{TaskID: task, N: int64(i + 1), ID: task + "_" + string(rune('0'+i)), Type: event.Progress, Actor: "coder",
				At: time.UnixMicro(int64(i)).UTC(), Data: event.Data(map[string]any{"text": "<b> & more"})}
			e.Seal(last[task])
			last[task] = e.Hash
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(b))
		}
	}
	return seal(t, lines)
}

func seal(t *testing.T, lines []string) []string {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n") + "\n"))
	s := api.Seal{Type: "seal", Events: len(lines), SHA256: hex.EncodeToString(sum[:]), At: time.Unix(9, 0)}
	s.Key = base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, s.SealText()))
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return append(append([]string{}, lines...), string(b))
}

func TestABundleVerifies(t *testing.T) {
	got, err := verifyBundle(strings.NewReader(strings.Join(bundleOf(t, 3), "\n") + "\n"))
	if err != nil || len(got.Problems) > 0 || got.Events != 6 || got.Tasks != 2 || got.Key == "" {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestASpoiledBundleIsNamed(t *testing.T) {
	whole := bundleOf(t, 3)
	for name, c := range map[string]struct {
		spoil func([]string) []string
		id    string // of the entry that is named
		says  string
	}{
		"an event was edited": {func(l []string) []string { l[2] = strings.Replace(l[2], "more", "less", 1); return l }, "tsk_a_1", "changed after"},
		"edited, sealed anew": {func(l []string) []string {
			l[2] = strings.Replace(l[2], "more", "less", 1)
			return seal(t, l[:6])
		}, "tsk_a_1", "changed after"},
		"one was removed":     {func(l []string) []string { return append(l[:2], l[3:]...) }, "", "counts 6 events"},
		"two were exchanged":  {func(l []string) []string { l[2], l[4] = l[4], l[2]; return l }, "tsk_a_1", "order"},
		"the end was cut off": {func(l []string) []string { return l[:4] }, "", "no seal"},
		"the seal was edited": {func(l []string) []string { l[6] = strings.Replace(l[6], `"events":6`, `"events":5`, 1); return l }, "", "signature"},
		"nothing":             {func([]string) []string { return nil }, "", "no seal"},
		"no events":           {func(l []string) []string { return []string{"hello", l[6]} }, "", "line 1 is no event"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := c.spoil(append([]string{}, whole...))
			got, err := verifyBundle(strings.NewReader(strings.Join(lines, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, p := range got.Problems {
				found = found || p.ID == c.id && strings.Contains(p.Message, c.says)
			}
			if !found {
				t.Errorf("got %+v, want %q at %q", got.Problems, c.says, c.id)
			}
		})
	}
}
