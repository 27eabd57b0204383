package stream

import (
	"strings"
	"testing"

	"gatehouse/orchestrator/record/event"
)

// A program hears each type under its name. A page hears what pages listen for under no
// name, so a new type needs no script that knows it, and nothing of sign-ins and the like.
func TestPagesHearTypesByTheTable(t *testing.T) {
	kinds := append(event.Types(), event.SessionEnded, event.ConfigurationChanged, "task.teleported")
	heard := 0
	for _, kind := range kinds {
		f, err := newFrame(7, 7, event.Event{TaskID: "tsk_a", N: 1, Type: kind, Data: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		program, page := string(sse{}.event(f)), string(sse{page: true}.event(f))
		name := "event: " + string(kind) + "\n"
		if !strings.HasPrefix(program, "id: 7\n"+name+"data: {") {
			t.Errorf("a program gets %q", program)
		}
		want := strings.Replace(program, name, "", 1)
		if !kind.Heard() {
			want = ""
		} else {
			heard++
		}
		if page != want {
			t.Errorf("a page gets %q of %s, want %q", page, kind, want)
		}
	}
	if heard != len(kinds)-2 {
		t.Errorf("pages hear %d of %d types", heard, len(kinds))
	}
	gap, err := sse{page: true}.gap(event.Of("", "gatehouse", event.GapData{From: 1, To: 2}))
	if err != nil || !strings.HasPrefix(string(gap), `data: {`) || !strings.Contains(string(gap), `"type":"gap"`) {
		t.Errorf("a gap on a page is %q, %v", gap, err)
	}
}
