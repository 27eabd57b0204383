package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gatehouse/orchestrator/record/event"
)

// How a stream is followed.
const (
	// idle is three of the server's heartbeats (15 s): a connection that is silent
	// for longer is dead, even where nobody has said so.
	idle = 45 * time.Second
	// maxFrame is above the largest event that the server stores.
	maxFrame = 16 << 20

	firstPause = 250 * time.Millisecond
	lastPause  = 5 * time.Second
)

// ErrStop ends Follow without an error when the function returns it.
var ErrStop = errors.New("stop")

// Follower follows the events of one task, or of all, over connections that come and
// go. Each stored event is given once and in order; what is not stored (message.delta)
// may be missed between two connections.
type Follower struct {
	Client *Client
	ID     string // task or delegation; "" for everything
	After  string // cursor; "" begins at the first event of a task, and at now for all
	// Each gets every event. An error ends Follow; ErrStop ends it with nil.
	Each func(Event) error
	// Live is told when a connection stands (nil) and when it was lost. It may be nil.
	Live func(lost error)

	pause time.Duration // for tests; 0 means firstPause
	quiet time.Duration // for tests; 0 means idle
}

// Follow returns when ctx ends, Each returns an error, or the server refuses (*Error
// with a 4xx status). A server that is away is asked again, without end.
func (f *Follower) Follow(ctx context.Context) error {
	pause := cmp.Or(f.pause, firstPause)
	wait := pause
	for {
		got, err := f.connection(ctx)
		var refused *Error
		var each *eachError
		switch {
		case errors.As(err, &each):
			if errors.Is(each.err, ErrStop) {
				return nil
			}
			return each.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &refused) && refused.Status/100 == 4 && refused.Status != http.StatusTooManyRequests:
			return err
		}
		if f.Live != nil {
			f.Live(err)
		}
		if got {
			wait = pause
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, lastPause)
	}
}

// eachError tells an error of Each from one of the connection.
type eachError struct{ err error }

func (e *eachError) Error() string { return e.err.Error() }
func (e *eachError) Unwrap() error { return e.err }

var errSilent = errors.New("the stream went silent")

// connection reads one connection to its end; got says that something came by it.
func (f *Follower) connection(ctx context.Context) (got bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := cmp.Or(f.quiet, idle)
	watchdog := time.AfterFunc(quiet, func() { cancel(errSilent) })
	defer watchdog.Stop()

	at, q := path("events"), url.Values{}
	if f.ID != "" {
		at = path("delegations", f.ID, "events")
	}
	set(q, "after", f.After)
	res, err := f.Client.do(ctx, http.MethodGet, at, q, nil, "text/event-stream")
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if f.Live != nil {
		f.Live(nil)
	}
	err = readFrames(res.Body, func() { watchdog.Reset(quiet) }, func(fr frame) error {
		got = true
		return f.take(fr)
	})
	if err == nil {
		err = io.ErrUnexpectedEOF // a stream has no end of its own
	}
	return got, err
}

// take gives one frame to Each unless it came before.
func (f *Follower) take(fr frame) error {
	if fr.id != "" && !newer(fr.id, f.After) {
		return nil
	}
	e, err := eventOf(fr.data)
	if err != nil {
		return nil // not an event: a later version's frame
	}
	e.Type = cmp.Or(e.Type, event.Type(fr.event))
	e.Cursor = fr.id
	if err := f.Each(e); err != nil {
		return &eachError{err}
	}
	if fr.id != "" {
		f.After = fr.id
	}
	return nil
}

// eventOf reads an event and keeps its document.
func eventOf(raw []byte) (Event, error) {
	e := Event{Raw: bytes.Clone(raw)}
	return e, json.Unmarshal(raw, &e)
}

// newer compares two cursors, which are numbers.
func newer(cursor, than string) bool {
	a, errA := strconv.ParseInt(cursor, 10, 64)
	b, errB := strconv.ParseInt(than, 10, 64)
	return errA != nil || errB != nil || a > b
}

// frame is one event of the SSE format.
type frame struct {
	id, event string
	data      []byte
}

// readFrames reads the SSE format; alive is called for every line, comments included.
// What stands after the last empty line is an event cut in half and is dropped.
func readFrames(r io.Reader, alive func(), each func(frame) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxFrame)
	var fr frame
	for lines.Scan() {
		alive()
		line := lines.Bytes()
		if len(line) == 0 {
			if fr.data != nil {
				if err := each(fr); err != nil {
					return err
				}
			}
			fr = frame{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			fr.id = string(value)
		case "event":
			fr.event = string(value)
		case "data":
			if fr.data != nil {
				fr.data = append(fr.data, '\n')
			}
			fr.data = append(fr.data, value...)
		}
	}
	return lines.Err()
}
