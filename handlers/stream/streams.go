package stream

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
)

// Intervals and limits of one connection.
const (
	heartbeat  = 15 * time.Second // so that proxies and clients see life
	rechecks   = 4                // is the session or token still good? Asked at each fourth heartbeat
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
}

// Streams answers the streaming routes. Close ends all of them and waits until the
// last reader and tail are gone.
type Streams struct {
	Options
	closing chan struct{}
	once    sync.Once
	readers sync.WaitGroup
	open    atomic.Int64

	mu    sync.Mutex
	tails map[string]*tail // by task; "" follows all
}

// New makes Streams.
func New(o Options) *Streams {
	return &Streams{Options: o, closing: make(chan struct{}), tails: map[string]*tail{}}
}

// Close ends all streams; further ones are refused.
func (s *Streams) Close() {
	s.mu.Lock()
	s.once.Do(func() { close(s.closing) })
	s.mu.Unlock()
	s.readers.Wait()
}

var errClosing = orchestrator.Errorf(orchestrator.CodeUnavailable, "The server is shutting down. Connect again in a moment.")

// enter counts a reader, unless the server is closing.
func (s *Streams) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return errClosing
	default:
		s.readers.Add(1)
		s.open.Add(1)
		return nil
	}
}

// leave is the opposite of enter.
func (s *Streams) leave() {
	s.open.Add(-1)
	s.readers.Done()
}

// Open is how many event streams and WebSockets are connected to this process.
func (s *Streams) Open() int { return int(s.open.Load()) }

// acquire returns the tail of a task ("" for all), which runs until release.
func (s *Streams) acquire(ctx context.Context, taskID string) (t *tail, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t = s.tails[taskID]
	if t == nil {
		if t, err = startTail(ctx, s.source(taskID), s.Log); err != nil {
			return nil, nil, err
		}
		s.tails[taskID] = t
	}
	t.readers++
	return t, func() { s.release(taskID, t) }, nil
}

func (s *Streams) source(taskID string) source {
	if taskID == "" {
		return allSource{s.Reader, s.Engine.Hub(), s.Grown}
	}
	return taskSource{s.Reader, s.Engine.Hub(), taskID}
}

func (s *Streams) release(taskID string, t *tail) {
	s.mu.Lock()
	t.readers--
	last := t.readers == 0
	if last {
		delete(s.tails, taskID)
	}
	s.mu.Unlock()
	if last {
		t.stop()
	}
}

// sink is one connection as a reader writes to it.
type sink interface {
	frame(f frame) error
	gap(e event.Event) error
	ping() error
	flush() error
}

// errDone ends a reader that has seen all it wanted.
var errDone = errors.New("done")

// errSignedOut ends a reader whose session or token is not good any more.
var errSignedOut = errors.New("signed out")

// reader is what one subscriber asked for.
type reader struct {
	taskID string
	only   string // a delegation whose events are wanted, "" for all
	cursor int64
	heard  int64 // the newest part of a message that it got
	who    handlers.Caller
	page   bool // a page of ours reads
}

// wants reports whether an event is one of those that were asked for.
func (r *reader) wants(f frame) bool {
	return (r.only == "" || f.event.DelegationID == r.only) && r.who.SeesStream(f.event.TaskID)
}

// sessionEnded is what the store writes at a sign-out.
const sessionEnded event.Type = "session.ended"

// concerns reports whether an event is about this reader's own access, such as a sign-out:
// then it is not only looked at with some heartbeat.
func (r *reader) concerns(e event.Event) bool {
	if e.TaskID != event.System || r.who.User.ID == "" {
		return false
	}
	// Who signs in ends the session that the browser had before, which may be another person's.
	return r.who.Session && e.Type == sessionEnded || e.Actor == r.who.User.Name || bytes.Contains(e.Data, []byte(r.who.User.ID))
}

func (r *reader) alive(ctx context.Context) bool { return r.who.Alive == nil || r.who.Alive(ctx) }

// pump sends events to out until the client, the session or the server ends. It
// returns nil when the server or session ended, else what went wrong.
func (s *Streams) pump(ctx context.Context, r reader, out sink) error {
	t, release, err := s.acquire(ctx, r.taskID)
	if err != nil {
		return err
	}
	defer release()
	r.heard = heardNothing
	if err := s.fromElsewhere(ctx, t, &r, out); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for beats := 1; ; {
		changed, err := s.advance(ctx, t, &r, out)
		if errors.Is(err, errSignedOut) {
			return nil
		}
		if err != nil {
			return err
		}
		if changed == nil { // there may be more at once; look at the rest without waiting
			changed = always
		}
		select {
		case <-changed:
		case <-beat.C:
			if beats++; beats%rechecks == 0 && !r.alive(ctx) {
				return nil
			}
			if err := out.ping(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return nil
		}
	}
}

// always is a channel that never makes anyone wait.
var always = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// fromElsewhere answers a cursor that this log has not reached: it belongs to
// another database, so what followed it there cannot be replayed here.
func (s *Streams) fromElsewhere(ctx context.Context, t *tail, r *reader, out sink) error {
	if r.cursor <= t.newestCursor() {
		return nil
	}
	newest, err := t.src.newest(ctx)
	if err != nil || r.cursor <= newest {
		return err
	}
	asked := r.cursor
	r.cursor = newest
	if err := out.gap(s.gapEvent(r.taskID, newest, asked)); err != nil {
		return err
	}
	return out.flush()
}

// gapEvent says which events a reader does not get.
func (s *Streams) gapEvent(taskID string, after, to int64) event.Event {
	return event.Event{TaskID: taskID, Type: event.Gap, Actor: "gatehouse", At: s.Now().UTC(),
		Data: event.Data(map[string]any{"from": after + 1, "to": to,
			"message": "Events " + strconv.FormatInt(after+1, 10) + "–" + strconv.FormatInt(to, 10) + " could not be replayed. Load the page or list again."})}
}

// advance sends what there is. It returns a channel to wait on once there is nothing.
func (s *Streams) advance(ctx context.Context, t *tail, r *reader, out sink) (<-chan struct{}, error) {
	frames, changed, behind := t.after(r.cursor, r.heard)
	if behind {
		var err error
		if frames, err = t.src.read(ctx, r.cursor, batch); err != nil {
			return nil, err
		}
	}
	if len(frames) == 0 {
		return changed, nil
	}
	for _, f := range frames {
		if f.part > 0 {
			if r.heard = f.part; r.wants(f) {
				if err := out.frame(f); err != nil {
					return nil, err
				}
			}
			continue
		}
		// Numbers of a task have no gaps; a missing one was removed from the log.
		if r.taskID != "" && f.cursor != r.cursor+1 {
			if err := out.gap(s.gapEvent(r.taskID, r.cursor, f.cursor-1)); err != nil {
				return nil, err
			}
		}
		r.cursor = f.cursor
		if r.concerns(f.event) && !r.alive(ctx) {
			return nil, errSignedOut
		}
		if !r.wants(f) {
			continue
		}
		if err := out.frame(f); err != nil {
			return nil, err
		}
	}
	return nil, out.flush()
}
