package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator/event"
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
// event says so, whatever the line reads, and each minute, when some have simply expired.
func (s *Streams) watch(heard *event.Subscription) {
	defer heard.Close()
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	everyone := func(*line) bool { return true }
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
			s.sweep(everyone)
		case <-heard.Lagged():
			s.sweep(everyone)
		case n := <-heard.C:
			events, err := s.systemEvents(n)
			if err != nil { // what it was is not known
				if !errors.Is(err, errUnknown) {
					s.Log.Warn("what may end sessions could not be read; looking at every stream", "err", err)
				}
				drain(heard)
				s.sweep(everyone)
				continue
			}
			s.sweep(func(l *line) bool {
				return slices.ContainsFunc(events, func(e event.Event) bool { return concerns(l.who, e) })
			})
		}
	}
}

// errUnknown says that a notice does not tell what happened.
var errUnknown = errors.New("something was missed")

// systemEvents are those of a notice, which another process sends without them.
func (s *Streams) systemEvents(n event.Notice) ([]event.Event, error) {
	if len(n.Events) > 0 {
		return n.Events, nil
	}
	if n.First <= 0 || n.Last-n.First >= batch {
		return nil, errUnknown
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	return s.Reader.Events(ctx, event.System, n.First-1, int(n.Last-n.First+1))
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
