package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/record/event"
)

// liveText prints what agents write while they write it, on a terminal. It is foreign:
// nothing of it controls the terminal. Thinking and calls of tools are not shown; their
// events are.
type liveText struct {
	writer string         // whose line is open: delegation and turn; "" for none
	seen   map[string]int // characters printed, by writer
}

// show prints what of a piece was not printed yet.
func (t *liveText) show(sh *console.Shell, e event.Event) error {
	part := event.Read[event.MessageDeltaData](e)
	key := fmt.Sprintf("%s %d", e.DelegationID, part.Turn)
	if part.Kind == event.KindReset {
		delete(t.seen, key)
		if t.writer != key {
			return nil
		}
		if err := t.end(sh); err != nil {
			return err
		}
		return sh.Say("%s", console.Line(e.Actor)+" begins this answer again")
	}
	text := part.Text
	for skip := t.seen[key] - part.Offset; skip > 0 && text != ""; skip-- {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	if part.Kind != "text" || text == "" {
		return nil
	}
	if part.Offset > t.seen[key] {
		text = "…" + text
	}
	if t.seen == nil || len(t.seen) > 1000 {
		t.seen = map[string]int{}
	}
	t.seen[key] = part.Offset + utf8.RuneCountInString(part.Text)
	if t.writer != key {
		if err := t.end(sh); err != nil {
			return err
		}
		t.writer, text = key, console.Line(e.Actor)+": "+strings.TrimLeft(text, "\n")
	}
	_, err := fmt.Fprint(sh.Out, console.Block(text))
	return err
}

// end ends the line that is open.
func (t *liveText) end(sh *console.Shell) error {
	if t.writer == "" {
		return nil
	}
	t.writer = ""
	return sh.Say("")
}
