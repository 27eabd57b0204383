package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator/record/event"
)

// hubOnly is an engine of which streams need nothing but the hub.
type hubOnly struct {
	handlers.Engine
	hub *event.Hub
}

func (e hubOnly) Hub() *event.Hub { return e.hub }

// wire is Streams over a log in memory, and connections to it over real sockets.
type wire struct {
	*testing.T
	*Streams
	log    *memory
	people *systemLog
}

func newWire(t *testing.T) *wire {
	t.Helper()
	m, people := &memory{hub: &event.Hub{}}, &systemLog{}
	s := New(Options{Engine: hubOnly{hub: m.hub}, Reader: people, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	tl, err := startTail(t.Context(), m, s.Log)
	if err != nil {
		t.Fatal(err)
	}
	tl.readers = 1 // the test's own, so that it stays
	s.tails["tsk_a"] = tl
	t.Cleanup(func() {
		s.Close()
		tl.stop()
	})
	return &wire{t, s, m, people}
}

// connect makes a line that reads the task from a cursor on, and returns the client's end of
// it. A small buffer takes long texts in parts only.
func (w *wire) connect(p protocol, who handlers.Caller, after int64, small bool) (*line, net.Conn) {
	w.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // one connection was all
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() }) //nolint:errcheck // the test may have closed it
	conn, err := ln.Accept()
	if err != nil {
		w.Fatal(err)
	}
	if small {
		if err := conn.(*net.TCPConn).SetWriteBuffer(4096); err != nil {
			w.Fatal(err)
		}
	}
	if err := w.enter(); err != nil {
		w.Fatal(err)
	}
	l := w.adopt(conn, p, who)
	go l.run(func() {
		if l.subscribe(reader{taskID: "tsk_a", cursor: after, who: who}, &plain{line: l}, 1) == nil {
			l.discard()
		}
	})
	return l, client
}

// until waits for something that has to come.
func (w *wire) until(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("never came: %s", what)
		}
	}
}

// parked is how many subscriptions wait with the tail.
func (w *wire) parked() (n int) {
	for _, s := range w.tails["tsk_a"].shards {
		s.mu.Lock()
		n += len(s.parked)
		s.mu.Unlock()
	}
	return n
}

// long is an event with a text of some size.
func long(i, size int) event.Event {
	return event.Event{TaskID: "tsk_a", DelegationID: "dlg_a", Type: event.Progress, Data: event.Data(map[string]any{"i": i, "text": strings.Repeat("x", size)})}
}

// numbers reads n events from a client's end and reports whether they are those behind after.
func numbers(conn net.Conn, p protocol, after int64, n int) error {
	br := bufio.NewReader(conn)
	for want := after + 1; want <= after+int64(n); {
		var body []byte
		if _, ok := p.(sse); ok {
			for !bytes.HasPrefix(body, []byte("data: ")) {
				var err error
				if body, err = br.ReadBytes('\n'); err != nil {
					return err
				}
			}
			body = body[6:]
		} else {
			var err error
			if _, body, err = serverFrame(br); err != nil {
				return err
			}
		}
		if s := string(bytes.TrimSpace(body)); s == "" || s == "{}" { // a heartbeat
			continue
		}
		var e event.Event
		if err := json.Unmarshal(body, &e); err != nil {
			return fmt.Errorf("%.80q: %w", body, err)
		}
		if e.N != want {
			return fmt.Errorf("event %d came, want %d", e.N, want)
		}
		want++
	}
	return nil
}

// serverFrame reads one WebSocket frame as a browser does.
func serverFrame(br *bufio.Reader) (kind byte, body []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(br, head[:]); err != nil {
		return 0, nil, err
	}
	size := uint64(head[1])
	if more := map[byte]int{126: 2, 127: 8}[head[1]]; more > 0 {
		var b [8]byte
		if _, err := io.ReadFull(br, b[8-more:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(b[:])
	}
	body = make([]byte, size)
	_, err = io.ReadFull(br, body)
	return head[0], body, err
}

// Quick and slow, early and late, by SSE and by WebSocket: everybody gets each event once and
// in order, also where the kernel takes only a part of it.
func TestEverybodyGetsEachEventOnce(t *testing.T) {
	w := newWire(t)
	w.patience = 5 * time.Minute // the slow ones take nothing until all is written, on whatever machine
	const lines, events = 24, 160
	var wg sync.WaitGroup
	written := make(chan struct{})
	for i := range lines {
		p := []protocol{sse{}, sse{page: true}, webSocket{}}[i%3]
		_, client := w.connect(p, handlers.Caller{}, 0, i%2 == 0)
		wg.Go(func() {
			if i%4 == 0 {
				<-written // has taken nothing so far
			}
			if err := numbers(client, p, 0, events); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	for i := range events {
		w.log.append(long(i, []int{10, 300, 30_000, 3000}[i%4]))
	}
	_, late := w.connect(webSocket{}, handlers.Caller{}, 100, false)
	wg.Go(func() {
		if err := numbers(late, webSocket{}, 100, events-100); err != nil {
			t.Errorf("who came late: %v", err)
		}
	})
	close(written)
	wg.Wait()
	w.until("all wait for more", func() bool { return w.parked() == lines+1 })
}

// Whoever takes nothing is dropped after a while, and nobody else waits for that.
func TestASlowClientIsDropped(t *testing.T) {
	w := newWire(t)
	w.patience = 5 * time.Second
	var stuck []net.Conn
	for range 5 {
		_, client := w.connect(webSocket{}, handlers.Caller{}, 0, true)
		stuck = append(stuck, client)
	}
	_, quick := w.connect(sse{}, handlers.Caller{}, 0, false)
	const events = 200
	got := make(chan error, 1)
	go func() { got <- numbers(quick, sse{}, 0, events) }()
	for i := range events {
		w.log.append(long(i, 50_000))
	}
	if err := <-got; err != nil {
		t.Error("the quick one:", err)
	}
	w.until("only the quick one is left", func() bool { return w.Open() == 1 && w.parked() == 1 })
	for _, c := range stuck {
		_, _ = io.Copy(io.Discard, c) // ends: the test's own limit is the proof
	}
}

// A line on which nothing happens is one goroutine, and nothing is left after its end.
func TestAnIdleLineIsOneGoroutine(t *testing.T) {
	w := newWire(t)
	w.log.append(long(0, 10))
	_, first := w.connect(sse{}, handlers.Caller{}, 0, false) // starts what all lines share
	w.until("the first one waits", func() bool { return w.parked() == 1 })
	before := runtime.NumGoroutine()
	const lines = 50
	for i := range lines {
		w.connect([]protocol{sse{}, webSocket{}}[i%2], handlers.Caller{}, 0, false)
	}
	w.until("one goroutine a line", func() bool { return w.parked() == lines+1 && runtime.NumGoroutine() <= before+lines })
	w.log.append(long(1, 10))
	if err := numbers(first, sse{}, 0, 2); err != nil {
		t.Error(err)
	}
	w.until("no other one stays behind an event", func() bool { return w.parked() == lines+1 && runtime.NumGoroutine() <= before+lines })
	w.Close()
	if n := w.Open(); n != 0 || w.parked() != 0 {
		t.Errorf("%d lines are open, %d subscriptions left", n, w.parked())
	}
	w.until("no goroutine is left", func() bool { return runtime.NumGoroutine() < before })
	if err := w.enter(); err == nil {
		t.Error("a closed server takes another reader")
	}
}

// A database that takes its time for one task holds up nobody who reads another, nor heartbeats
// or the end of the server. Who waited for it first may leave, and the next one goes on.
func TestASlowDatabaseHoldsUpOnlyWhoAsksIt(t *testing.T) {
	w := newWire(t)
	asked := make(chan context.Context, 2)
	var answers atomic.Bool
	w.people.slow = func(ctx context.Context) error {
		answered := answers.Load() // before the test goes on
		asked <- ctx
		if answered {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	slow := func(l *line) {
		if err := l.subscribe(reader{taskID: "tsk_slow"}, &plain{line: l}, 2); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := w.connect(webSocket{}, handlers.Caller{}, 0, false)
	second, _ := w.connect(webSocket{}, handlers.Caller{}, 0, false)
	w.until("both wait", func() bool { return w.parked() == 2 })
	slow(first)
	<-asked
	slow(second)
	_, client := w.connect(sse{}, handlers.Caller{}, 0, false)
	w.log.append(long(0, 10))
	if err := client.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := numbers(client, sse{}, 0, 1); err != nil {
		t.Error("who reads another task:", err)
	}
	answers.Store(true)
	first.end()
	<-asked
	w.until("the second one reads the task", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		t := w.tails["tsk_slow"]
		return t != nil && t.readers == 1 && len(t.beginning) == 0
	})
	w.Close()
	if len(w.tails) != 1 { // the test's own
		t.Errorf("%d tails are left", len(w.tails))
	}
}

// What is stored between a subscription's last look and its place among the parked is
// delivered at once, and not with the next event.
func TestWhatComesWhileASubscriptionParksIsDelivered(t *testing.T) {
	w := newWire(t)
	quiet, client := w.connect(sse{}, handlers.Caller{}, 0, false)
	w.until("it waits", func() bool { return w.parked() == 1 })
	quiet.state.Lock()
	u := quiet.subs[0]
	quiet.state.Unlock()
	u.shard.mu.Lock()
	u.shard.parked, u.place = nil, working // as if it were about to park
	u.shard.mu.Unlock()
	version := u.tail.version.Load()
	w.log.append(long(0, 10))
	w.until("the tail has it", func() bool { return u.tail.version.Load() != version })
	if !u.shard.park(u, version) {
		t.Fatal("the line has ended")
	}
	if err := client.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := numbers(client, sse{}, 0, 1); err != nil {
		t.Error(err)
	}
}
