package cli

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// WatchCmd follows events.
type WatchCmd struct {
	ID string `arg:"" optional:"" help:"A task or delegation; without it everything from now on."`
}

// Run prints one line for each event until the watched one has ended, or Ctrl-C.
func (c *WatchCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	w := &watcher{sh: sh, api: api}
	if c.ID != "" {
		found, err := findDelegation(ctx, api, c.ID)
		if err != nil {
			return err
		}
		w.d = found.Value
		w.id = w.d.ID
		if w.d.ParentID == "" {
			w.id = w.d.TaskID // the root stands for the whole task
		}
	}
	f := &client.Follower{Client: api, ID: w.id, Live: w.stream, Each: func(e client.Event) error { return w.take(ctx, e) }}
	err := f.Follow(ctx)
	if err != nil && ctx.Err() != nil && w.id != "" {
		return console.Fail(console.ExitInterrupted, "The task goes on. Follow it: gatehouse watch %s", console.Short(w.id))
	}
	return err
}

// watcher prints events.
type watcher struct {
	sh   *console.Shell
	api  *client.Client
	id   string
	d    wire.Delegation
	n    int64 // of the newest event that was printed
	lost bool
	text liveText
}

// stream says once that a connection is lost, and once that it is back.
func (w *watcher) stream(lost error) {
	switch {
	case lost != nil && !w.lost:
		w.sh.Hint("Not live since %s. Trying again.", w.sh.Now().Format(time.TimeOnly))
	case lost == nil && w.lost:
		w.sh.Hint("Live again.")
	}
	w.lost = lost != nil
}

func (w *watcher) take(ctx context.Context, e client.Event) error {
	if err := w.print(e); err != nil {
		return err
	}
	w.n = max(w.n, e.N)
	if w.id == "" || e.DelegationID != w.d.ID || !e.Type.Ends() {
		return nil
	}
	// A retry makes an end that is not the last one; only the row knows.
	d, err := w.api.Delegation(ctx, w.d.ID)
	if err != nil || !d.Value.Ended() || d.Value.EndedAt == nil || e.At.Before(*d.Value.EndedAt) {
		return nil
	}
	rest, err := w.api.Events(ctx, w.id, w.n)
	if err != nil {
		return nil // the stream goes on and brings them
	}
	for _, e := range rest.Items {
		if err := w.print(e); err != nil {
			return err
		}
	}
	return client.ErrStop
}

func (w *watcher) print(e client.Event) error {
	if w.sh.JSON {
		return w.sh.Document(e.Raw)
	}
	if e.Type == event.MessageDelta {
		if !w.sh.Tty {
			return nil // the whole message comes as an event
		}
		return w.text.show(w.sh, e.Event)
	}
	if err := w.text.end(w.sh); err != nil {
		return err
	}
	task := ""
	if w.id == "" {
		task = console.Short(e.TaskID) + "  "
	}
	text := strings.TrimRight(e.At.Local().Format(time.TimeOnly)+"  "+task+console.Pad(console.Line(e.Actor), 18)+"  "+console.Pad(console.Line(string(e.Type)), 26)+"  "+summary(e.Event), " ")
	return w.sh.Say("%s", text)
}

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
