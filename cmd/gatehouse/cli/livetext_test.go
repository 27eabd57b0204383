package cli

import (
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/client"
)

// piece is a message.delta as the stream gives it.
func piece(delegation string, turn int, kind, text string, offset int) event.Event {
	return event.Part{DelegationID: delegation, Actor: "kik", Turn: turn, Kind: kind, Text: text, Offset: offset}.Event()
}

// A32: on a terminal the text of a model shows while it comes; pieces that come twice
// print once, a missing one is marked, and nothing of it controls the terminal.
func TestWatchShowsWhatIsBeingWritten(t *testing.T) {
	t.Parallel()
	done := event.Event{Type: "message.completed", Actor: "kik", Data: []byte(`{"turn":1,"text":"whole","calls":[{"name":"read_file"},{"name":"search"}]}`)}
	for _, c := range []struct {
		name   string
		tty    bool
		events []event.Event
		want   []string
		not    string
	}{
		{"in order", true, []event.Event{piece("dlg_a", 1, "text", "Hello ", 0), piece("dlg_a", 1, "text", "world", 6), done}, []string{"kik: Hello world\n", "whole · calls read_file, search"}, ""},
		{"twice", true, []event.Event{piece("dlg_a", 1, "text", "Hello ", 0), piece("dlg_a", 1, "text", "Hello world", 0)}, []string{"kik: Hello world"}, "HelloHello"},
		{"a piece is missing", true, []event.Event{piece("dlg_a", 1, "text", "Hello", 0), piece("dlg_a", 1, "text", "world", 9)}, []string{"kik: Hello…world"}, ""},
		{"two write at once", true, []event.Event{piece("dlg_a", 1, "text", "one", 0), piece("dlg_b", 1, "text", "two", 0)}, []string{"kik: one\nkik: two"}, ""},
		{"the call broke", true, []event.Event{piece("dlg_a", 1, "text", "first", 0), piece("dlg_a", 1, "reset", "", 0), piece("dlg_a", 1, "text", "second", 0)}, []string{"kik: first\nkik begins this answer again\nkik: second"}, "…"},
		{"thinking and calls", true, []event.Event{piece("dlg_a", 1, "thinking", "secret thought", 0), piece("dlg_a", 1, "tool", "{", 0)}, nil, "secret"},
		{"hostile", true, []event.Event{piece("dlg_a", 1, "text", "\x1b[2J\u202e", 0)}, []string{"⟦U+001B⟧[2J⟦U+202E⟧"}, "\x1b"},
		{"no terminal", false, []event.Event{piece("dlg_a", 1, "text", "Hello", 0), done}, []string{"whole · calls"}, "Hello"},
	} {
		var out strings.Builder
		w := &watcher{sh: &console.Shell{Out: &out, Tty: c.tty}}
		for _, e := range c.events {
			if err := w.print(client.Event{Event: e}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in %q", c.name, want, out.String())
			}
		}
		if c.not != "" && strings.Contains(out.String(), c.not) {
			t.Errorf("%s: %q is in %q", c.name, c.not, out.String())
		}
	}
}
