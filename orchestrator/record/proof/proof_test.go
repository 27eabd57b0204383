package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/record/event"
)

var (
	serverKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	otherKey  = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	sealedAt  = time.Date(2026, 7, 1, 14, 2, 7, 123456000, time.UTC)
)

// historyOf is n events of each task, in turns; the data of those listed in dropped is gone.
func historyOf(n int, dropped map[int]bool, tasks ...string) []event.Event {
	var all []event.Event
	last := map[string]string{}
	for i := range n {
		for _, id := range tasks {
			e := event.Event{TaskID: id, N: int64(i + 1), ID: fmt.Sprintf("evt_%s_%d", id, i+1), Type: event.Progress, Actor: "coder",
				At: time.UnixMicro(1780000000000000 + int64(i)).UTC(), Data: event.Data(map[string]any{"text": "<b> & more é"})}
			e.Seal(last[id])
			last[id] = e.Hash
			if dropped[i] {
				e.SetStored(event.DropData(string(e.Data), sealedAt))
			}
			all = append(all, e)
		}
	}
	return all
}

// proofOf is a checkpoint over the events as they were once.
func proofOf(key ed25519.PrivateKey, all []event.Event) Proof {
	heads := map[string]Head{}
	var ids []string
	for _, e := range all {
		if _, ok := heads[e.TaskID]; !ok {
			ids = append(ids, e.TaskID)
		}
		heads[e.TaskID] = Head{e.TaskID, e.N, e.Hash}
	}
	public := key.Public().(ed25519.PublicKey)
	p := Proof{Checkpoint: Checkpoint{Pos: int64(len(all)), At: sealedAt, KeyID: Fingerprint(public)}, Key: public}
	sum := NewHeads()
	for _, id := range ids {
		p.Heads = append(p.Heads, heads[id])
		sum.Add(heads[id])
	}
	p.Checkpoint.Heads = sum.Sum()
	p.Signature = ed25519.Sign(key, p.Message())
	return p
}

func bundleOf(t *testing.T, key ed25519.PrivateKey, scope string, all []event.Event, proofs ...Proof) []string {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, scope)
	for _, e := range all {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Seal(key, sealedAt, proofs); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// old is the bundle as version 1 wrote it.
func old(t *testing.T, all []event.Event) []string {
	t.Helper()
	lines := bundleOf(t, serverKey, "", all)
	lines = lines[:len(lines)-1]
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n") + "\n"))
	line, err := Seal{Type: "seal", Events: len(lines), SHA256: hex.EncodeToString(sum[:]), At: sealedAt}.sign(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	return append(lines, string(line))
}

func verifyLines(t *testing.T, lines []string, keys ...string) Report {
	t.Helper()
	r, err := Verify(strings.NewReader(strings.Join(lines, "\n")+"\n"), Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestABundleVerifiesWithNothingElse(t *testing.T) {
	all := historyOf(3, nil, "tsk_a", "tsk_b")
	fingerprint := Fingerprint(serverKey.Public().(ed25519.PublicKey))
	for name, c := range map[string]struct {
		lines   []string
		version int
		covered int
		dropped int
	}{
		"of whole tasks":            {bundleOf(t, serverKey, WholeTasks, all, proofOf(serverKey, all)), 2, 2, 0},
		"sealed before the newest":  {bundleOf(t, serverKey, WholeTasks, all, proofOf(serverKey, all[:4])), 2, 2, 0},
		"of a filter with gaps":     {bundleOf(t, serverKey, Filtered, []event.Event{all[0], all[4], all[5]}, proofOf(serverKey, all)), 2, 2, 0},
		"of version 1":              {old(t, all), 1, 0, 0},
		"with dropped data":         {bundleOf(t, serverKey, WholeTasks, historyOf(3, map[int]bool{0: true, 1: true}, "tsk_a", "tsk_b"), proofOf(serverKey, all)), 2, 2, 4},
		"of nothing":                {bundleOf(t, serverKey, Filtered, nil), 2, 0, 0},
		"without the last LF":       {old(t, all), 1, 0, 0},
		"of events of other shapes": {bundleOf(t, serverKey, Filtered, historyOf(1, nil, "system")), 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := verifyLines(t, c.lines, fingerprint)
			if !r.OK() || r.Version != c.version || r.Covered != c.covered || r.Dropped != c.dropped || r.Key != fingerprint || !r.At.Equal(sealedAt) {
				t.Errorf("%+v", r)
			}
			if without, err := Verify(strings.NewReader(strings.Join(c.lines, "\n")), Options{}); err != nil || !without.OK() {
				t.Errorf("without the last line feed: %+v %v", without, err)
			}
		})
	}
}

func TestWhatIsWrongWithABundleIsNamed(t *testing.T) {
	all := historyOf(3, nil, "tsk_a", "tsk_b")
	foreign := historyOf(1, nil, "tsk_x")
	line := func(e event.Event) string {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, c := range map[string]struct {
		spoil func(l []string) []string
		line  int
		id    string
		says  string
	}{
		"an event was edited":       {func(l []string) []string { l[2] = strings.Replace(l[2], "more", "less", 1); return l }, 3, "evt_tsk_a_2", "changed after"},
		"edited and sealed anew":    {nil, 3, "evt_tsk_a_2", "changed after"},
		"only its writing":          {func(l []string) []string { l[2] = strings.Replace(l[2], `"actor":`, `"actor": `, 1); return l }, 3, "evt_tsk_a_2", "not written as"},
		"a key in capitals":         {func(l []string) []string { l[2] = strings.Replace(l[2], `"actor"`, `"Actor"`, 1); return l }, 3, "evt_tsk_a_2", "not written as"},
		"one line was removed":      {func(l []string) []string { return append(l[:2:2], l[3:]...) }, 4, "evt_tsk_a_3", "n 2 to 2 are missing"},
		"the last of a task":        {func(l []string) []string { return append(l[:5:5], l[6:]...) }, 0, "evt_tsk_b_2", "the end of tsk_b is missing"},
		"two were exchanged":        {func(l []string) []string { l[2], l[4] = l[4], l[2]; return l }, 5, "evt_tsk_a_2", "order"},
		"one is there twice":        {func(l []string) []string { return append(l[:3:3], append([]string{l[2]}, l[3:]...)...) }, 4, "evt_tsk_a_2", "twice"},
		"an event of another task":  {func(l []string) []string { return append(l[:3:3], append([]string{line(foreign[0])}, l[3:]...)...) }, 4, "", "tsk_x is not one of those"},
		"the end was cut off":       {func(l []string) []string { return l[:4] }, 0, "", "no seal"},
		"the seal was edited":       {func(l []string) []string { l[6] = strings.Replace(l[6], `"events":6`, `"events":5`, 1); return l }, 0, "", "signature of the seal"},
		"the seal in other spaces":  {func(l []string) []string { l[6] = strings.Replace(l[6], `{"type"`, `{ "type"`, 1); return l }, 0, "", "signature of the seal"},
		"something after the seal":  {func(l []string) []string { return append(l, l[0]) }, 7, "", "more comes after it"},
		"a blank line at the end":   {func(l []string) []string { return append(l, "") }, 0, "", "no seal"},
		"no events":                 {func(l []string) []string { return []string{"hello", l[6]} }, 1, "", "line 1 is no event"},
		"a torn line":               {func(l []string) []string { l[2] = l[2][:len(l[2])-9]; return l }, 3, "evt_tsk_a_2", "line 3 is no event"},
		"nothing":                   {func([]string) []string { return nil }, 0, "", "no seal"},
		"a list in place of events": {func(l []string) []string { return []string{"[1,2]", strings.Repeat("[", 200_000), "null", `"x"`} }, 2, "", "line 2 is no event"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			if c.spoil == nil {
				edited := append([]event.Event{}, all...)
				edited[2].Data = event.Data(map[string]any{"text": "another"})
				lines = bundleOf(t, serverKey, WholeTasks, edited)
			} else {
				lines = c.spoil(bundleOf(t, serverKey, WholeTasks, all, proofOf(serverKey, all)))
			}
			r, err := Verify(strings.NewReader(strings.Join(lines, "\n")+"\n"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Problems {
				if p.Line == c.line && p.ID == c.id && strings.Contains(p.Message, c.says) {
					return
				}
			}
			t.Errorf("%+v, want %q at line %d, %q", r.Problems, c.says, c.line, c.id)
		})
	}
}

// Somebody who can write the database, and have it exported with a good seal, is found by
// the checkpoints that were signed before.
func TestHistoryThatWasWrittenAnewBeforeTheExportIsFound(t *testing.T) {
	all := historyOf(3, nil, "tsk_a")
	anew := historyOf(3, nil, "tsk_a")
	for i := range anew {
		anew[i].Actor = "mallory"
		prev := ""
		if i > 0 {
			prev = anew[i-1].Hash
		}
		anew[i].Seal(prev)
	}
	spoiled := proofOf(serverKey, all)
	spoiled.Heads = append([]Head{}, spoiled.Heads...)
	spoiled.Heads[0].N = 2
	for name, c := range map[string]struct {
		lines []string
		keys  []string
		says  string
	}{
		"the end cut off":        {bundleOf(t, serverKey, WholeTasks, all[:2], proofOf(serverKey, all)), nil, "cut off before the export"},
		"written anew":           {bundleOf(t, serverKey, WholeTasks, anew, proofOf(serverKey, all)), nil, "written anew"},
		"other heads":            {bundleOf(t, serverKey, WholeTasks, all, spoiled), nil, "not those that it signs"},
		"another key sealed":     {bundleOf(t, otherKey, WholeTasks, all), []string{Fingerprint(serverKey.Public().(ed25519.PublicKey))}, "none of those that were named"},
		"another key checked":    {bundleOf(t, serverKey, WholeTasks, all, proofOf(otherKey, all)), []string{Fingerprint(serverKey.Public().(ed25519.PublicKey))}, "none of those that were named"},
		"half a name of a key":   {bundleOf(t, serverKey, WholeTasks, all), []string{Fingerprint(serverKey.Public().(ed25519.PublicKey))[:8]}, "none of those that were named"},
		"events are left out":    {bundleOf(t, serverKey, WholeTasks, []event.Event{all[0], all[2]}), nil, "n 2 to 2 are missing"},
		"a beginning that lacks": {bundleOf(t, serverKey, WholeTasks, all[1:]), nil, "n 1 to 1 are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := verifyLines(t, c.lines, c.keys...)
			for _, p := range r.Problems {
				if strings.Contains(p.Message, c.says) {
					return
				}
			}
			t.Errorf("%+v, want %q", r, c.says)
		})
	}
}

// One byte, anywhere, by any change that keeps it a byte: it never verifies.
func TestNoByteCanBeChanged(t *testing.T) {
	all := historyOf(2, map[int]bool{0: true}, "tsk_a", "tsk_b")
	for name, lines := range map[string][]string{"version 2": bundleOf(t, serverKey, WholeTasks, all, proofOf(serverKey, all)), "version 1": old(t, all)} {
		whole := []byte(strings.Join(lines, "\n") + "\n")
		for i := range whole {
			for _, mask := range []byte{0x01, 0x20, 0x80} {
				spoiled := bytes.Clone(whole)
				spoiled[i] ^= mask
				if r, err := Verify(bytes.NewReader(spoiled), Options{}); err != nil || r.OK() {
					t.Fatalf("%s: byte %d of %d (%q made %q) can be changed: %+v %v", name, i, len(whole), whole[i], spoiled[i], r, err)
				}
			}
			if r, err := Verify(bytes.NewReader(append(bytes.Clone(whole[:i]), whole[i+1:]...)), Options{}); err != nil || r.OK() && i != len(whole)-1 {
				t.Fatalf("%s: byte %d can be left out: %+v %v", name, i, r, err)
			}
		}
	}
}

// endless is a line that never ends.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'a'
	}
	e.left -= int64(len(p))
	return len(p), nil
}

func TestALineOfAGigabyteIsRefusedAndNotHeld(t *testing.T) {
	in := &endless{left: 1 << 30}
	r, err := Verify(in, Options{})
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "longer than 32 MB") || r.Problems[0].Line != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if read := int64(1<<30) - in.left; read > 64<<20 {
		t.Errorf("%d bytes of it were read", read)
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	r, err := Verify(strings.NewReader(strings.Repeat("x\n", 1000)), Options{})
	if err != nil || len(r.Problems) != MaxProblems || r.More != 1000-MaxProblems {
		t.Errorf("%d problems and %d more, %v", len(r.Problems), r.More, err)
	}
}

func FuzzVerify(f *testing.F) {
	var b bytes.Buffer
	w := NewWriter(&b, WholeTasks)
	for _, e := range historyOf(2, nil, "tsk_a") {
		if err := w.Add(e); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Seal(serverKey, sealedAt, nil); err != nil {
		f.Fatal(err)
	}
	whole := b.Bytes()
	f.Add(whole)
	f.Add([]byte("{}\n{\"type\":\"seal\"}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := Verify(bytes.NewReader(in), Options{Keys: []string{Fingerprint(serverKey.Public().(ed25519.PublicKey))}})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() && !bytes.Equal(bytes.TrimSuffix(in, []byte("\n")), bytes.TrimSuffix(whole, []byte("\n"))) {
			t.Errorf("%q verifies", in)
		}
	})
}
