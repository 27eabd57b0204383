package stream

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"

	"github.com/labstack/echo/v4"
)

// Intervals and limits of one connection.
const (
	heartbeat  = 15 * time.Second // so that proxies and clients see life
	recheck    = time.Minute      // is the session or token still good?
	writeLimit = 10 * time.Second // a reader that takes nothing for so long is dropped
)

// Options is what Streams are made of.
type Options struct {
	Engine handlers.Engine
	Reader handlers.Reader
	Ids    handlers.Ids
	Log    *slog.Logger
	Now    func() time.Time
	// Grown returns a channel that is closed when the order over all tasks grows; nil
	// where nobody can tell, and then it is asked for a while after each event.
	Grown func() <-chan struct{}
	// SameOrigin reports whether a browser's request comes from a page of ours.
	SameOrigin func(r *http.Request) bool
	// Most is how many streams may be open at once; 0 is half of what the process may open
	// at all, so that pages, the API and git always find a descriptor.
	Most int
}

// Streams answers the streaming routes. Close ends all of them and waits until the
// last line and tail are gone.
type Streams struct {
	Options
	patience time.Duration // writeLimit
	closing  chan struct{}
	once     sync.Once
	readers  sync.WaitGroup // lines, and requests that become one
	keeping  sync.WaitGroup // heartbeats and the watch over sessions (keepalive.go)
	ending   sync.WaitGroup // heartbeats that have to wait, and tails that end
	open     atomic.Int64
	// handshakes keeps the WebSocket library from making a buffer for each connection.
	handshakes sync.Pool

	mu    sync.Mutex
	kept  bool // those two run
	lines map[*line]struct{}
	tails map[string]*tail // by task; "" follows all
}

// New makes Streams.
func New(o Options) *Streams {
	if o.Most <= 0 {
		o.Most = share()
	}
	return &Streams{Options: o, patience: writeLimit, closing: make(chan struct{}), lines: map[*line]struct{}{}, tails: map[string]*tail{}}
}

// Close ends all streams; further ones are refused.
func (s *Streams) Close() {
	s.mu.Lock()
	s.once.Do(func() { close(s.closing) })
	s.mu.Unlock()
	for _, l := range s.among(func(*line) bool { return true }) {
		l.bye(closeRestart, textClosing)
	}
	s.readers.Wait()
	s.keeping.Wait()
	s.ending.Wait()
}

// among lists the lines that are wanted. want may change what mu guards.
func (s *Streams) among(want func(*line) bool) []*line {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*line
	for l := range s.lines {
		if want(l) {
			all = append(all, l)
		}
	}
	return all
}

var errClosing = orchestrator.Errorf(orchestrator.CodeUnavailable, "The server is shutting down. Connect again in a moment.")

// enter counts a reader, unless the server is closing. The first one starts what looks
// after all of them.
func (s *Streams) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return errClosing
	default:
		if s.Open() >= s.Most {
			return errFull
		}
		s.readers.Add(1)
		s.open.Add(1)
		if !s.kept {
			s.kept = true
			s.keeping.Go(s.beat)
			heard := s.Engine.Hub().Watch(event.System, 64) // before there is a line that it may concern
			s.keeping.Go(func() { s.watch(heard) })
		}
		return nil
	}
}

// leave is the opposite of enter for a request that became no line.
func (s *Streams) leave() {
	s.open.Add(-1)
	s.readers.Done()
}

// forget is the opposite of enter for a line that has ended.
func (s *Streams) forget(l *line) {
	s.mu.Lock()
	delete(s.lines, l)
	s.mu.Unlock()
	s.readers.Done()
}

// Open is how many event streams and WebSockets are connected to this process.
func (s *Streams) Open() int { return int(s.open.Load()) }

// acquire returns the tail of a task ("" for all), which runs until release. It waits for the
// database where nobody reads the tail yet, and nobody else waits for that.
func (s *Streams) acquire(ctx context.Context, taskID string) (*tail, error) {
	s.mu.Lock()
	t := s.tails[taskID]
	if t == nil {
		t = newTail(s.source(taskID), s.Log)
		s.tails[taskID] = t
	}
	t.readers++
	s.mu.Unlock()
	if err := t.begin(ctx); err != nil {
		s.release(taskID, t)
		return nil, err
	}
	return t, nil
}

func (s *Streams) source(taskID string) source {
	if taskID == "" {
		return allSource{s.Reader, s.Engine.Hub(), s.Grown}
	}
	return taskSource{s.Reader, s.Engine.Hub(), taskID}
}

// release gives a tail back. It does not wait, because the tail's own goroutines call it, too.
func (s *Streams) release(taskID string, t *tail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.readers--; t.readers == 0 {
		delete(s.tails, taskID)
		s.ending.Go(t.stop)
	}
}

// comeBack is after how many seconds a client that found no place may try again.
const comeBack = "10"

var errFull = orchestrator.Errorf(orchestrator.CodeUnavailable, "As many streams are open as this server has room for. Try again in "+comeBack+" seconds, close streams that nobody reads, or raise the server's limit of open files.")

// share is how many streams this process has room for.
func share() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur/2 > math.MaxInt32 {
		return math.MaxInt32
	}
	return max(1, int(limit.Cur/2))
}

// turnAway says when to come again where that is known.
func turnAway(c echo.Context, err error) error {
	if errors.Is(err, errFull) {
		c.Response().Header().Set(echo.HeaderRetryAfter, comeBack)
	}
	return err
}
