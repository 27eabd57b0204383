package stream

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"

	"github.com/gorilla/websocket"
)

// systemLog is a reader of which only the events about people are asked for, and tasks.
type systemLog struct {
	handlers.Reader
	mu     sync.Mutex
	events []event.Event
	slow   func(ctx context.Context) error // what looking for another task is like
}

func (r *systemLog) append(events ...event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		e.TaskID, e.N = event.System, int64(len(r.events)+1)
		r.events = append(r.events, e)
	}
}

func (r *systemLog) Events(_ context.Context, taskID string, after int64, limit int) ([]event.Event, error) {
	if taskID != event.System {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events[after:min(int(after)+limit, len(r.events))]), nil
}

func (r *systemLog) Task(ctx context.Context, id string) (orchestrator.Task, error) {
	if id != event.System {
		return orchestrator.Task{ID: id}, r.slow(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return orchestrator.Task{ID: id, LastN: int64(len(r.events))}, nil
}

// A session that ends takes its lines with it, whatever they read and whoever ended it; others
// stay.
func TestLinesEndWithTheirSession(t *testing.T) {
	ended := event.Event{TaskID: event.System, N: 2, Type: event.SessionEnded, Actor: "dora"}
	for name, notice := range map[string]*event.Notice{
		"here":                        {TaskID: event.System, First: 2, Last: 2, Events: []event.Event{ended}},
		"on another node":             {TaskID: event.System, First: 1, Last: 2},
		"nobody knows where":          {},
		"out of order":                {TaskID: event.System, First: 3, Last: 3, Events: []event.Event{{TaskID: event.System, N: 3}}},
		"in a flood of others":        {TaskID: event.System, First: 2, Last: 2 + batch},
		"by a process that tells not": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.people.append(event.Event{Type: "user.created", Actor: "root"})
			after := []event.Event{ended}
			if notice != nil && notice.Last > 2 {
				after = append(after, make([]event.Event, notice.Last-2)...)
			}
			w.endsOneSession(func() {
				w.people.append(after...)
				if notice != nil {
					w.log.hub.Publish(*notice)
				}
			})
		})
	}
}

func (w *wire) endsOneSession(end func()) {
	w.Helper()
	var asked, over atomic.Int64
	who := handlers.Caller{Session: true, SessionName: "one"}
	who.User.ID, who.User.Name = "usr_dora", "dora"
	other := who
	other.SessionName = "two"
	who.Alive = func(context.Context) bool {
		asked.Add(1)
		return over.Load() == 0
	}
	var clients []net.Conn
	for range 8 {
		_, c := w.connect(webSocket{}, who, 0, false)
		clients = append(clients, c)
	}
	_, page := w.connect(sse{page: true}, who, 0, false)
	w.connect(sse{page: true}, other, 0, false)
	w.until("all wait", func() bool { return w.parked() == 10 })
	over.Store(1)
	asked.Store(0)
	end()
	for _, c := range clients {
		kind, body, err := serverFrame(bufio.NewReader(c))
		if want := websocket.FormatCloseMessage(closeSignedOut, textSignedOut); err != nil || kind != 0x88 || !bytes.Equal(body, want) {
			w.Errorf("a WebSocket of the ended session got %x %q, %v", kind, body, err)
		}
	}
	if _, err := io.Copy(io.Discard, page); err != nil {
		w.Error(err)
	}
	w.until("the other session's page is left", func() bool { return w.Open() == 1 && w.parked() == 1 })
	if n := asked.Load(); n != 1 {
		w.Errorf("one session was looked up %d times", n)
	}
}

// What does not concern a session ends nothing and asks nothing.
func TestOthersSigningInEndsNothing(t *testing.T) {
	w := newWire(t)
	asked := make(chan struct{}, 10)
	who := handlers.Caller{Session: true, SessionName: "one", Alive: func(context.Context) bool { asked <- struct{}{}; return true }}
	who.User.ID, who.User.Name = "usr_dora", "dora"
	w.connect(sse{page: true}, who, 0, false)
	w.until("it waits", func() bool { return w.parked() == 1 })
	<-asked // when it began
	for i, e := range []event.Event{
		event.Of("", "ivy", event.SessionCreatedData{UserID: "usr_ivy"}),
		event.Of("", "root", event.TokenRevokedData{TokenID: "tok_1"}),
		event.Of("", "root", event.HoldSetData{Reason: "what usr_dora asked for"}), // a text is nobody's access
		{Type: event.SessionEnded, Actor: "ivy"},                                   // it may have been dora's browser
	} {
		e.TaskID, e.N = event.System, int64(i+1)
		w.people.append(e)
		w.log.hub.Publish(event.Notice{TaskID: event.System, First: e.N, Last: e.N, Events: []event.Event{e}})
	}
	<-asked // for the last one
	if len(asked) > 0 || w.Open() != 1 {
		t.Errorf("%d further looks, %d lines open", len(asked), w.Open())
	}
}
