package stream

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator/record/event"
)

// memory is a log in memory, so that a test says what is committed when.
type memory struct {
	mu     sync.Mutex
	events []event.Event
	hub    *event.Hub
	before func() // what happens while a tail asks for the newest event
}

func (m *memory) read(_ context.Context, after int64, limit int) ([]frame, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var frames []frame
	for _, e := range m.events[min(after, int64(len(m.events))):] {
		f, err := newFrame(e.N, 0, e)
		if err != nil {
			return nil, err
		}
		if frames = append(frames, f); len(frames) == limit {
			break
		}
	}
	return frames, nil
}

func (m *memory) newest(context.Context) (int64, error) {
	if m.before != nil {
		m.before()
	}
	return int64(len(m.events)), nil
}

func (m *memory) watch() *event.Subscription { return m.hub.Watch("tsk_a", 16) }
func (m *memory) listen() *event.Listener    { return m.hub.Listen("tsk_a", keepParts) }
func (m *memory) grown() <-chan struct{}     { return nil }
func (m *memory) late() bool                 { return false }

// startTail is a tail that has begun.
func startTail(ctx context.Context, src source, log *slog.Logger) (*tail, error) {
	t := newTail(src, log)
	return t, t.begin(ctx)
}

func (m *memory) append(e event.Event) {
	m.mu.Lock()
	e.N = int64(len(m.events) + 1)
	m.events = append(m.events, e)
	m.mu.Unlock()
	m.hub.Publish(event.Notice{TaskID: "tsk_a", First: e.N, Last: e.N})
}

func (m *memory) pass(turn, offset int, text string) {
	m.hub.Pass(event.Part{TaskID: "tsk_a", DelegationID: "dlg_a", Turn: turn, Kind: "text", Text: text, Offset: offset})
}

func completed(turn int) event.Event {
	return event.Event{TaskID: "tsk_a", DelegationID: "dlg_a", Type: event.MessageCompleted, Data: event.Data(map[string]any{"turn": turn})}
}

// follow reads from a tail until the words are there.
func follow(t *testing.T, tl *tail, cursor, heard int64, want ...string) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		version := tl.version.Load()
		frames, behind := tl.after(cursor, heard)
		if behind {
			t.Fatal("behind")
		}
		for _, f := range frames {
			word := fmt.Sprintf("%s %d", f.event.Type, f.event.Turn())
			if f.part > 0 {
				heard = f.part
			} else {
				cursor = f.cursor
			}
			got = append(got, word)
		}
		for end := time.Now().Add(20 * time.Second); len(frames) == 0 && tl.version.Load() == version; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("got %v, and then nothing; want %v", got, want)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestATailOrdersPartsAmongEvents(t *testing.T) {
	m := &memory{hub: &event.Hub{}}
	m.append(event.Event{TaskID: "tsk_a", Type: event.TaskCreated, Data: event.Data(nil)})
	m.pass(1, 0, "so far")
	tl, err := startTail(t.Context(), m, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer tl.stop()
	follow(t, tl, 1, heardNothing, "message.delta 1")

	m.pass(1, 6, ", and more")
	m.append(completed(1))
	follow(t, tl, 1, 1, "message.delta 1", "message.completed 1")
	m.pass(1, 16, "from another node, too late")
	m.pass(2, 0, "next")
	follow(t, tl, 2, 2, "message.delta 2")
	follow(t, tl, 1, 1, "message.delta 1", "message.completed 1", "message.delta 2")
	follow(t, tl, 1, heardNothing, "message.completed 1", "message.delta 2") // the stored text is the whole

	// A retry counts its turns from 1 again.
	m.append(event.Event{TaskID: "tsk_a", DelegationID: "dlg_a", Type: event.Failed, Data: event.Data(nil)})
	follow(t, tl, 2, 3, "delegation.failed 0")
	m.pass(3, 0, "after the end")
	m.hub.Pass(event.Part{TaskID: "tsk_a", DelegationID: "dlg_b", Turn: 1, Kind: "text", Text: "another one"})
	follow(t, tl, 3, 3, "message.delta 1")
	m.append(event.Event{TaskID: "tsk_a", DelegationID: "dlg_a", Type: event.Queued, Data: event.Data(nil)})
	m.pass(1, 0, "again")
	follow(t, tl, 2, 3, "delegation.failed 0", "message.delta 1", "delegation.queued 0", "message.delta 1")
}

// A turn that ends while the first reader comes is not shown once more behind its end.
func TestATurnThatEndsWhileATailBegins(t *testing.T) {
	m := &memory{hub: &event.Hub{}}
	m.before = func() {
		m.pass(1, 0, "the first turn")
		m.hub.Over("tsk_a", "dlg_a")
		m.append(completed(1))
		m.hub.Pass(event.Part{TaskID: "tsk_a", DelegationID: "dlg_b", Turn: 2, Kind: "text", Text: "of another"})
	}
	tl, err := startTail(t.Context(), m, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer tl.stop()
	follow(t, tl, 1, heardNothing, "message.delta 2")
	m.hub.Pass(event.Part{TaskID: "tsk_a", DelegationID: "dlg_c", Turn: 3, Kind: "text", Text: "of a third"})
	follow(t, tl, 1, 1, "message.delta 3")
	if frames, behind := tl.after(2, heardNothing); len(frames) > 0 || behind {
		t.Errorf("who has read more than the tail gets %d parts that may be of a turn it has", len(frames))
	}
}

// However many read, a part is encoded once; and it is not kept for long.
func TestReadersShareOneEncoding(t *testing.T) {
	m := &memory{hub: &event.Hub{}}
	tl, err := startTail(t.Context(), m, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer tl.stop()
	m.pass(1, 0, "a")
	follow(t, tl, 0, heardNothing, "message.delta 1")
	for range 2 {
		one, _ := tl.after(0, heardNothing)
		two, _ := tl.after(0, heardNothing)
		if len(one) != 1 || len(two) != 1 || &one[0].sse[0] != &two[0].sse[0] {
			t.Error("what was written so far is encoded for each reader")
		}
		one, _ = tl.after(0, 0)
		two, _ = tl.after(0, 0)
		if len(one) == 0 || len(two) == 0 || &one[0].sse[0] != &two[0].sse[0] {
			t.Error("a part is encoded for each reader")
		}
	}
	for i := range 20 * keepParts {
		tl.mu.Lock()
		tl.passing.show([]event.Part{{DelegationID: "dlg_a", Turn: 1, Kind: "text", Text: "b", Offset: 1 + i}}, 0, tl.log)
		tl.mu.Unlock()
	}
	if n := len(tl.passing.frames); n > 2*keepParts || cap(tl.passing.frames) > 8*keepParts {
		t.Errorf("%d parts kept", n)
	}
}
