package stream

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// reader is what one subscriber asked for.
type reader struct {
	taskID string
	only   string // a delegation whose events are wanted, "" for all
	cursor int64
	heard  int64 // the newest part of a message that it got
	who    handlers.Caller
}

// wants reports whether an event is one of those that were asked for.
func (r *reader) wants(f frame) bool {
	return (r.only == "" || f.event.DelegationID == r.only) && r.who.SeesStream(f.event.TaskID)
}

// concerns reports whether an event is about a caller's own access, such as a sign-out:
// then that is not only looked at once a minute.
func concerns(who handlers.Caller, e event.Event) bool {
	if e.TaskID != event.System || who.User.ID == "" {
		return false
	}
	userID, tokens := e.Access()
	// Who signs in ends the session that the browser had before, which may be another person's.
	return who.Session && e.Type == event.SessionEnded || e.Actor == who.User.Name || userID == who.User.ID || slices.Contains(tokens, who.TokenID)
}

// skips reports whether an event is not the next one. Numbers of a task have no gaps; a
// missing one was removed from the log.
func (r *reader) skips(f frame) bool { return r.taskID != "" && f.part == 0 && f.cursor != r.cursor+1 }

// pass notes that a frame was sent or is not wanted.
func (r *reader) pass(f frame) {
	if f.part > 0 {
		r.heard = f.part
	} else {
		r.cursor = f.cursor
	}
}

// sink is how a subscription says things. frame may keep what it writes until flush, which
// also writes what the line has kept.
type sink interface {
	frame(f frame) error
	gap(e event.Event) error
	flush() error
}

// errDone ends a reader that has seen all it wanted.
var errDone = errors.New("done")

// errSignedOut ends a reader whose session or token is not good any more.
var errSignedOut = errors.New("signed out")

// working is the place of a subscription that is not parked.
const working = -1

// subscription is one reader of one line. It either works in a goroutine of its own, which
// waits for the store and for a slow client, or is parked with its tail and costs a few
// words: then what is new is written by the goroutines that all readers of the tail share
// (shard.go), and whatever would make those wait wakes it up.
type subscription struct {
	reader
	line  *line
	out   sink
	tail  *tail
	shard *shard
	place int  // among the parked of the shard; guarded by shard.mu
	over  bool // guarded by shard.mu: the line has ended
}

// begin starts a subscription, in its own goroutine.
func (u *subscription) begin() {
	parked := false
	defer func() {
		if !parked { // also after a panic
			u.finish()
		}
	}()
	t, err := u.line.streams.acquire(u.line.ctx, u.taskID)
	if err != nil {
		u.report(err)
		return
	}
	u.line.state.Lock()
	u.tail, u.shard = t, t.shard()
	u.line.state.Unlock()
	u.heard = heardNothing
	if !u.line.alive() { // it ended before there was a line to be told
		u.report(errSignedOut)
		return
	}
	if err = u.fromElsewhere(); err == nil {
		parked, err = u.catchUp()
	}
	u.report(err)
}

// work goes on after the subscription was parked, in its own goroutine.
func (u *subscription) work() {
	parked := false
	defer func() {
		if !parked {
			u.finish()
		}
	}()
	var err error
	parked, err = u.catchUp()
	u.report(err)
}

// wake makes a subscription that was taken out of its place go on by itself.
func (u *subscription) wake() { go u.line.guard(u.work) }

// finish gives back what a subscription held. Nobody works on it or finds it any more.
func (u *subscription) finish() {
	if u.tail != nil {
		u.line.streams.release(u.taskID, u.tail)
	}
	u.line.drop(u)
}

// stop ends a subscription, now where it is parked, else when its work is done.
func (u *subscription) stop() {
	u.line.state.Lock()
	s := u.shard
	u.line.state.Unlock()
	if s != nil && s.remove(u) {
		u.finish()
	}
}

// report says why a subscription ended, to those whom it concerns.
func (u *subscription) report(err error) {
	switch l := u.line; {
	case err == nil || l.ctx.Err() != nil || errors.Is(err, errDone):
	case errors.Is(err, errWrite):
		l.end()
	case errors.Is(err, errSignedOut):
		l.bye(closeSignedOut, textSignedOut)
	default:
		l.streams.Log.Warn("a stream ended early; its reader resumes by cursor", "task", u.taskID, "err", err)
		l.fail(err, u.taskID)
	}
}

// fromElsewhere answers a cursor that this log has not reached: it belongs to
// another database, so what followed it there cannot be replayed here.
func (u *subscription) fromElsewhere() error {
	if u.cursor <= u.tail.newestCursor() {
		return nil
	}
	newest, err := u.tail.src.newest(u.line.ctx)
	if err != nil || u.cursor <= newest {
		return err
	}
	asked := u.cursor
	u.cursor = newest
	if err := u.out.gap(u.gapEvent(newest, asked)); err != nil {
		return err
	}
	return u.out.flush()
}

// gapEvent says which events a reader does not get.
func (u *subscription) gapEvent(after, to int64) event.Event {
	e := event.Of("", "gatehouse", event.GapData{From: after + 1, To: to,
		Message: "Events " + strconv.FormatInt(after+1, 10) + "–" + strconv.FormatInt(to, 10) + " could not be replayed. Load the page or list again."})
	e.TaskID, e.At = u.taskID, u.line.streams.Now().UTC()
	return e
}

// catchUp sends what there is, however far behind, and parks the subscription when there is
// nothing more. Not parked, it has ended.
func (u *subscription) catchUp() (parked bool, err error) {
	for u.line.ctx.Err() == nil {
		version := u.tail.version.Load() // before looking
		frames, behind := u.tail.after(u.cursor, u.heard)
		if behind {
			if frames, err = u.tail.src.read(u.line.ctx, u.cursor, batch); err != nil {
				return false, err
			}
		}
		for _, f := range frames {
			if err := u.send(f); err != nil {
				return false, err
			}
		}
		if err := u.out.flush(); err != nil {
			return false, err
		}
		if len(frames) == 0 {
			return u.shard.park(u, version), nil
		}
	}
	return false, context.Canceled
}

// send writes one frame, or says what is missing before it.
func (u *subscription) send(f frame) error {
	if u.skips(f) {
		if err := u.out.gap(u.gapEvent(u.cursor, f.cursor-1)); err != nil {
			return err
		}
	}
	u.pass(f)
	if f.part == 0 && concerns(u.who, f.event) && !u.line.alive() {
		return errSignedOut
	}
	if !u.wants(f) {
		return nil
	}
	return u.out.frame(f)
}

// fail tells the client what went wrong where its protocol can; the line of a single
// stream ends.
func (l *line) fail(err error, taskID string) {
	if w, ok := l.proto.(interface {
		refuse(*line, error, string) error
	}); ok {
		if w.refuse(l, err, taskID) == nil {
			return
		}
	}
	l.end()
}

// plain writes frames as they are, many small ones at once.
type plain struct {
	line *line
	buf  []byte
}

func (o *plain) frame(f frame) error { return o.keep(o.line.proto.event(f)) }

func (o *plain) gap(e event.Event) error {
	b, err := o.line.proto.gap(e)
	if err != nil {
		return err
	}
	return o.keep(b)
}

func (o *plain) keep(b []byte) error {
	if o.buf == nil {
		o.buf = make([]byte, 0, max(piece, len(b)))
	}
	if o.buf = append(o.buf, b...); len(o.buf) < piece {
		return nil
	}
	return o.flush()
}

func (o *plain) flush() error {
	b := o.buf
	o.buf = nil // a parked subscription keeps none
	return o.line.write(b)
}

// notReadable is what somebody gets who may not read delegations.
var notReadable = orchestrator.Errorf(orchestrator.CodeForbidden, "Reading delegations needs the right delegations:read.")
