package stream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator/record/event"
)

// beatEvery is how exactly heartbeats come.
const beatEvery = time.Second

// beat sends the heartbeats of all lines until the server ends.
func (s *Streams) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	a := newAttempt()
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		now := s.Now()
		due := s.among(func(l *line) bool {
			if now.Before(l.due) {
				return false
			}
			_, every := l.proto.beat()
			l.due = now.Add(every)
			return true
		})
		for _, l := range due {
			l.heartbeat(a)
		}
	}
}

// watch ends the lines of sessions and tokens that are not good any more: at once where an
// event says so, whatever the line reads; within lookEvery where nobody told of that event,
// such as another process on the same file, or where it could not be read; and each minute,
// when some have simply expired.
func (s *Streams) watch(heard *event.Subscription) {
	defer heard.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.keeping.Go(func() { // or a database that does not answer would hold Close up
		<-s.closing
		cancel()
	})
	tick, look := time.NewTicker(recheck), time.NewTicker(lookEvery)
	defer tick.Stop()
	defer look.Stop()
	everyone := func(*line) bool { return true }
	a := access{streams: s}
	_ = a.skip(ctx) // where that fails, the first look is from the beginning on
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
			s.sweep(everyone)
			continue
		case <-heard.Lagged():
		case n := <-heard.C:
			if a.told(n) {
				s.sweep(about(n.Events))
				continue
			}
			drain(heard) // one look answers them all
		case <-look.C:
			if s.lone() {
				continue
			}
		}
		switch events, all, err := a.read(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.Log.Warn("what may end sessions could not be read; trying again", "err", err)
		case !all:
			s.sweep(everyone)
		case len(events) > 0:
			s.sweep(about(events))
		}
	}
}

// about wants the lines that one of these events may end.
func about(events []event.Event) func(*line) bool {
	return func(l *line) bool {
		return slices.ContainsFunc(events, func(e event.Event) bool { return concerns(l.who, e) })
	}
}

// lone reports whether nobody is connected.
func (s *Streams) lone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines) == 0
}

// access reads the log about people: who signed out, which token was revoked. The log is the
// truth and notices are hints, as everywhere.
type access struct {
	streams *Streams
	seen    int64 // the newest event that was acted upon
}

// told reports whether a notice brings the very next events itself.
func (a *access) told(n event.Notice) bool {
	if len(n.Events) == 0 || n.First != a.seen+1 {
		return false
	}
	a.seen = n.Last
	return true
}

// read returns what has been written since; without all of it, when that is very much, every
// line has to be looked at.
func (a *access) read(ctx context.Context) (events []event.Event, all bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.streams.patience)
	defer cancel()
	events, err = a.streams.Reader.Events(ctx, event.System, a.seen, batch)
	if err != nil || len(events) == 0 {
		return nil, true, err
	}
	if len(events) == batch {
		return nil, false, a.skip(ctx)
	}
	a.seen = events[len(events)-1].N
	return events, true, nil
}

// skip goes to the newest event.
func (a *access) skip(ctx context.Context) error {
	t, err := a.streams.Reader.Task(ctx, event.System)
	a.seen = max(a.seen, t.LastN)
	return err
}

// sweep looks whether the callers of these lines are still whom they were, once for each
// credential and what it could do, and ends the lines of those that are not.
func (s *Streams) sweep(which func(*line) bool) {
	asked := map[string]bool{}
	for _, l := range s.among(which) {
		select {
		case <-s.closing:
			return
		default:
		}
		key := credential(l)
		good, known := asked[key]
		if !known || key == "" {
			good = l.alive()
			if l.ctx.Err() != nil {
				continue // it ended meanwhile, and says nothing about the others
			}
			asked[key] = good
		}
		if !good {
			l.bye(closeSignedOut, textSignedOut)
		}
	}
}

// credential is the same for lines whose callers stand or fall together; "" for one that
// stands alone.
func credential(l *line) string {
	switch w := l.who; {
	case w.Session:
		return fmt.Sprint("session ", w.SessionName, w.Scopes)
	case w.TokenID != "":
		return fmt.Sprint("token ", w.TokenID, w.Scopes)
	case w.Run != nil:
		return fmt.Sprint("run ", w.Run.DelegationID, w.Run.Attempt)
	}
	return ""
}

// textSignedOut and textClosing are what a WebSocket is told at its end.
const (
	textSignedOut = "signed out"
	textClosing   = "the server is shutting down"
)
