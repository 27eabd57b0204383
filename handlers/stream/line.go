package stream

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// protocol is how one kind of connection says things. A nil answer says nothing.
type protocol interface {
	event(f frame) []byte
	gap(e event.Event) ([]byte, error)
	// beat is sent every so often, so that proxies and clients see life.
	beat() (text []byte, every time.Duration)
	bye(code int, text string) []byte
}

// line is one connection after its handler has returned: nothing of the request stays,
// and one goroutine with a small stack, which waits for what the client sends. Whoever
// has something to write does so at once where the kernel takes it (try); only for a
// client that is slow a goroutine waits (write), and not for long.
type line struct {
	streams *Streams
	conn    net.Conn
	raw     syscall.RawConn // nil where the connection has none: then nothing is tried
	proto   protocol
	who     handlers.Caller
	ctx     context.Context // ends with the line
	cancel  context.CancelFunc
	ended   atomic.Bool
	due     time.Time   // of the next heartbeat; guarded by Streams.mu
	beating atomic.Bool // a heartbeat waits for the client

	subscribed sync.WaitGroup // subscriptions that have not ended
	state      sync.Mutex
	subs       []*subscription // guarded by state
	over       bool            // guarded by state: no further subscriptions

	mu   sync.Mutex // one writer at a time
	rest []byte     // guarded by mu: of what the kernel took in part; comes before all else
}

// errWrite marks a connection that takes nothing any more.
var errWrite = errors.New("the client took too long or went away")

// adopt makes a line of a connection that its handler has taken over. The count of
// enter goes over to it; run ends it.
func (s *Streams) adopt(conn net.Conn, p protocol, who handlers.Caller) *line {
	l := &line{streams: s, conn: conn, proto: p, who: who}
	l.ctx, l.cancel = context.WithCancel(context.Background()) // of no request: the handler returns
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			l.raw = raw
		}
	}
	_, every := p.beat()
	l.due = s.Now().Add(every)
	s.mu.Lock()
	s.lines[l] = struct{}{}
	s.mu.Unlock()
	return l
}

// run listens to the client until the connection ends, and then ends everything that
// belongs to it. It is the line's own goroutine.
func (l *line) run(listen func()) {
	defer l.streams.forget(l)
	defer l.subscribed.Wait()
	defer l.endAll()
	defer l.end()
	select {
	case <-l.streams.closing: // it was closed before this line was among those to close
		l.bye(closeRestart, textClosing)
	default:
		l.guard(listen)
	}
}

// guard keeps a fault in one connection from ending the others.
func (l *line) guard(f func()) {
	defer func() {
		if what := recover(); what != nil {
			l.streams.Log.Error("a stream panicked and was ended", "panic", what, "stack", string(debug.Stack()))
			l.end()
		}
	}()
	f()
}

// discard reads what a client sends that should not send anything, until it goes away.
func (l *line) discard() {
	for buf := make([]byte, 64); ; { // io.Copy would keep 8 kB
		if _, err := l.conn.Read(buf); err != nil {
			return
		}
	}
}

// end closes the connection; more than once does no harm. Whoever sees it closed does not
// find it among those that are open.
func (l *line) end() {
	if !l.ended.Swap(true) {
		l.streams.open.Add(-1)
	}
	l.cancel()
	_ = l.conn.Close() // nobody is there to hear of it
}

// bye tells the client why, where it takes that at once, and ends.
func (l *line) bye(code int, text string) {
	if b := l.proto.bye(code, text); b != nil {
		l.try(b, newAttempt())
	}
	l.end()
}

// endAll ends the subscriptions; those that somebody works on end when that is done.
func (l *line) endAll() {
	l.state.Lock()
	l.over = true
	subs := slices.Clone(l.subs)
	l.state.Unlock()
	for _, u := range subs {
		u.stop()
	}
}

// alive looks whether the caller's session or token is still good.
func (l *line) alive() bool {
	if l.who.Alive == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.streams.patience)
	defer cancel()
	return l.who.Alive(ctx)
}

// outcome is what became of a try.
type outcome int

const (
	sent   outcome = iota // all of it
	kept                  // the kernel took a part, and the line keeps the rest: write has to follow
	full                  // nothing of it: write it
	broken                // the connection is gone
)

// attempt is a write that does not wait. It is made once for many, because a closure for
// each would be most of the garbage of a burst.
type attempt struct {
	b   []byte
	n   int
	err error
	fn  func(fd uintptr) bool
}

func newAttempt() *attempt {
	a := &attempt{}
	a.fn = func(fd uintptr) bool {
		for {
			a.n, a.err = syscall.Write(int(fd), a.b)
			if a.err != syscall.EINTR {
				return true
			}
		}
	}
	return a
}

// try writes as much as the kernel takes now, and does not wait for other writers either.
// Nobody changes b afterwards.
func (l *line) try(b []byte, a *attempt) outcome {
	if l.raw == nil || !l.mu.TryLock() {
		return full
	}
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		return full
	}
	a.b = b
	err := l.raw.Write(a.fn)
	a.b = nil
	switch {
	case err != nil:
		return broken
	case a.err == syscall.EAGAIN:
		return full
	case a.err != nil:
		return broken
	case a.n < len(b):
		l.rest = b[a.n:]
		return kept
	}
	return sent
}

// piece is how much a client has to take within writeLimit, in bytes.
const piece = 16 << 10

// write writes what was kept and then b. A client that takes too long is dropped: the error
// is errWrite, and the connection is of no use any more.
func (l *line) write(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.rest
	l.rest = nil
	if len(rest)+len(b) == 0 {
		return nil
	}
	for _, b := range [][]byte{rest, b} {
		for part := range slices.Chunk(b, piece) {
			if l.conn.SetWriteDeadline(time.Now().Add(l.streams.patience)) != nil {
				return errWrite
			}
			if _, err := l.conn.Write(part); err != nil {
				return errWrite
			}
		}
	}
	if l.conn.SetWriteDeadline(time.Time{}) != nil { // or a later try would find it passed
		return errWrite
	}
	return nil
}

// heartbeat sends a sign of life; a client that has taken nothing for long ends with it.
func (l *line) heartbeat(a *attempt) {
	b, _ := l.proto.beat()
	switch l.try(b, a) {
	case sent:
	case broken:
		l.end()
	case kept:
		b = nil
		fallthrough
	case full:
		if l.beating.Swap(true) && b != nil {
			return // the one before is on its way, too
		}
		l.streams.ending.Go(func() {
			defer l.beating.Store(false)
			if l.write(b) != nil {
				l.end()
			}
		})
	}
}

// subscribe runs a reader beside the others of this connection.
func (l *line) subscribe(r reader, out sink, most int) error {
	l.state.Lock()
	defer l.state.Unlock()
	if len(l.subs) >= most {
		return orchestrator.Errorf(orchestrator.CodeConflict, "This connection has %d subscriptions, which is the limit. Open another one.", len(l.subs))
	}
	if l.over {
		return context.Canceled
	}
	u := &subscription{reader: r, line: l, out: out, place: working}
	l.subs = append(l.subs, u)
	l.subscribed.Add(1)
	go l.guard(u.begin)
	return nil
}

// drop forgets a subscription that has ended.
func (l *line) drop(u *subscription) {
	l.state.Lock()
	if i := slices.Index(l.subs, u); i >= 0 {
		l.subs = slices.Delete(l.subs, i, i+1)
	}
	l.state.Unlock()
	l.subscribed.Done()
}
