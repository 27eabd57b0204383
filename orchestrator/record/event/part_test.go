package event

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func text(turn int, s string, offset int) Part {
	return Part{TaskID: "tsk_a", DelegationID: "dlg_a", Actor: "kik", Turn: turn, Kind: "text", Text: s, Offset: offset}
}

func TestPartsAreCutAtCharactersAndJoinAgain(t *testing.T) {
	for _, s := range []string{"", "abc", strings.Repeat("é", 50), strings.Repeat("日本", 20), "a" + strings.Repeat("😀", 9)} {
		for most := 4; most < 12; most++ {
			whole, offset := Part{Kind: "text"}, 0
			for i, p := range text(1, s, 0).Split(most) {
				if len(p.Text) > most || !utf8.ValidString(p.Text) || p.Offset != offset {
					t.Fatalf("%q in %d: piece %d is %+v", s, most, i, p)
				}
				offset += utf8.RuneCountInString(p.Text)
				if i == 0 {
					whole = p
				} else if !whole.Join(p) {
					t.Fatalf("%q in %d: piece %d does not join", s, most, i)
				}
			}
			if whole.Text != s {
				t.Errorf("%q in %d came back as %q", s, most, whole.Text)
			}
		}
	}
	bad := text(1, strings.Repeat("\x80", 20), 0) // never a character
	if got := len(bad.Split(4)); got != 5 {
		t.Errorf("no character: %d pieces", got)
	}
}

func TestADraftTellsWhatIsNew(t *testing.T) {
	reset := Part{DelegationID: "dlg_a", Turn: 1, Kind: KindReset}
	for _, c := range []struct {
		name string
		add  []Part
		want string // text of the parts that Add said are new
		kept string
	}{
		{"in order", []Part{text(1, "ab", 0), text(1, "cd", 2)}, "ab|cd", "abcd"},
		{"twice", []Part{text(1, "ab", 0), text(1, "ab", 0), text(1, "bc", 1)}, "ab|c", "abc"},
		{"a piece is missed", []Part{text(1, "ab", 0), text(1, "ef", 4)}, "ab|ef", "ab/ef"},
		{"the next turn", []Part{text(1, "ab", 0), text(2, "x", 0)}, "ab|x", "x"},
		{"an earlier turn", []Part{text(2, "ab", 0), text(1, "x", 0)}, "ab", "ab"},
		{"taken back", []Part{text(1, "ab", 0), reset, text(1, "x", 0)}, "ab||x", "x"},
	} {
		var d Draft
		var fresh, kept []string
		for _, p := range c.add {
			if p, ok := d.Add(p); ok {
				fresh = append(fresh, p.Text)
			}
		}
		for _, p := range d.Parts() {
			kept = append(kept, p.Text)
		}
		if got := strings.Join(fresh, "|"); got != c.want {
			t.Errorf("%s: new was %q, want %q", c.name, got, c.want)
		}
		if got := strings.Join(kept, "/"); got != c.kept {
			t.Errorf("%s: kept %q, want %q", c.name, got, c.kept)
		}
	}
}

func TestADraftIsBounded(t *testing.T) {
	var d Draft
	written := 0
	for i := range 3000 { // much more than is kept, of which the end is
		p := text(1, fmt.Sprintf("%06d é\n", i), written)
		written += utf8.RuneCountInString(p.Text)
		d.Add(p)
	}
	size, end := 0, 0
	for _, p := range d.Parts() {
		size, end = size+len(p.Text), p.Offset+utf8.RuneCountInString(p.Text)
	}
	if size > draftBytes || size < draftBytes/2 || end != written {
		t.Errorf("%d bytes kept up to character %d of %d", size, end, written)
	}
	for i := range 500 {
		p := text(1, "x", 0)
		p.DelegationID = fmt.Sprint("dlg_", i)
		d.Add(p)
	}
	if n := len(d.Parts()); n > draftWriters+2 {
		t.Errorf("%d writers kept", n)
	}
}

// K13: a listener of a task hears every run in it; who comes later gets what is being
// written, and nothing is kept once the message is over.
func TestListenersHearATaskAndWhatWasWrittenSoFar(t *testing.T) {
	var h Hub
	other := h.Listen("tsk_b", 1)
	defer other.Close()
	first := h.Listen("tsk_a", 10)
	child := text(1, "child", 0)
	child.DelegationID = "dlg_child"
	for _, p := range []Part{text(1, "one ", 0), child, text(1, "two", 4)} {
		h.Pass(p)
	}
	for _, want := range []string{"one ", "child", "two"} {
		if got := (<-first.C).Text; got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	late := h.Listen("tsk_a", 10)
	so := map[string]string{}
	for _, p := range late.SoFar() {
		so[p.DelegationID] += p.Text
	}
	if so["dlg_a"] != "one two" || so["dlg_child"] != "child" {
		t.Errorf("so far %v", so)
	}
	h.Over("tsk_a", "dlg_a")
	h.Over("tsk_a", "dlg_child")
	if got := h.Drafts("tsk_a"); len(got)+len(h.parts.drafts) != 0 {
		t.Errorf("over, and still kept: %v", got)
	}
	for range 50 { // nobody waits for a listener that takes nothing
		h.Pass(text(2, "x", 0))
	}
	late.Close()
	late.Close()
	first.Close()
	if got := h.Listened(); len(got) != 1 || got[0] != "tsk_b" || len(other.C) != 0 {
		t.Errorf("listened to %v, the other task heard %d", got, len(other.C))
	}
	e := text(3, "\x00\u202e", 7)
	e.At = time.Unix(0, 0).UTC()
	if got := string(e.Event().Data); got != `{"kind":"text","offset":7,"text":"\u0000`+"\u202e"+`","tool":"","turn":3}` {
		t.Errorf("event data %s", got)
	}
}
