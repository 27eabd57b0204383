package stream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"

	"github.com/labstack/echo/v4"
)

// Wanted reports whether a client asks for SSE.
func Wanted(c echo.Context) bool {
	return strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "text/event-stream")
}

// Task streams the events that the id in the address names: /delegations/{id}/events
// and /delegation-stream?id=. Without a cursor it begins at the first event.
func (s *Streams) Task(c echo.Context) error {
	id := c.Param("id")
	if id == "" {
		id = c.QueryParam("id")
	}
	who, _ := handlers.Who(c)
	taskID, only, err := handlers.Scope(c.Request().Context(), s.Ids, who, id)
	if err != nil {
		return err
	}
	cursor, err := cursorOf(c, 0)
	if err != nil {
		return err
	}
	return s.serve(c, reader{taskID: taskID, only: only, cursor: cursor, who: who})
}

// All streams the events of all tasks. Without a cursor it begins with what happens
// from now on; ?after=0 begins at the first event there is.
func (s *Streams) All(c echo.Context) error {
	who, _ := handlers.Who(c)
	if who.Run != nil {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run sees its own task only. Ask for /delegations/%s/events.", who.Run.TaskID)
	}
	// A page that somebody opened before another one signed in is told nothing of theirs.
	session := c.QueryParam("session")
	if session != "" && session != who.SessionName {
		return handlers.Refuse(handlers.CodeUnauthorized, "The session that this page belongs to has ended. Load the page again.")
	}
	newest, err := s.Reader.LastPosition(c.Request().Context())
	if err != nil {
		return err
	}
	cursor, err := cursorOf(c, newest)
	if err != nil {
		return err
	}
	return s.serve(c, reader{cursor: cursor, who: who, page: session != ""})
}

// cursorOf reads where to resume. A browser that reconnects sends Last-Event-ID,
// which is newer than the address it first connected to.
func cursorOf(c echo.Context, absent int64) (int64, error) {
	s := c.Request().Header.Get("Last-Event-ID")
	if s == "" {
		s = c.QueryParam("after")
	}
	if s == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, orchestrator.Errorf(orchestrator.CodeBadRequest, "The cursor %.40q is not a number from 0 on. Use the id of the last event.", s)
	}
	return n, nil
}

func (s *Streams) serve(c echo.Context, r reader) error {
	if !s.SameOrigin(c.Request()) {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Another site asked for this stream. Open Gatehouse itself.")
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	beat := commentBeat
	if r.page {
		beat = eventBeat
	}
	out := &sseSink{beat: beat, w: c.Response(), rc: http.NewResponseController(c.Response())}
	if err := out.write([]byte("retry: 2000\n\n")); err != nil {
		return nil // the client is gone
	}
	if err := out.flush(); err != nil {
		return nil
	}
	err := s.pump(c.Request().Context(), r, out)
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, errWrite) {
		s.Log.Warn("a stream ended early; its reader resumes by cursor", "err", err)
	}
	return nil // the answer has begun, so there is no other one to give
}

// Heartbeats. Scripts cannot see comments, so pages get an event: only by that do they
// know a line that was cut without a word from one on which nothing happens.
const (
	commentBeat = ": alive\n\n"
	eventBeat   = "event: alive\ndata: {}\n\n"
)

// errWrite marks a connection that takes nothing any more.
var errWrite = errors.New("the client took too long or went away")

// sseSink writes the text/event-stream format.
type sseSink struct {
	beat string // heartbeat
	w    http.ResponseWriter
	rc   *http.ResponseController
}

func (o *sseSink) write(b []byte) error {
	if err := o.rc.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errWrite
	}
	if _, err := o.w.Write(b); err != nil {
		return errWrite
	}
	return nil
}

func (o *sseSink) frame(f frame) error { return o.write(f.sse) }

// gap has no id: a reconnect resumes after the last event that was really sent.
func (o *sseSink) gap(e event.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return o.write([]byte("event: gap\ndata: " + string(body) + "\n\n"))
}

func (o *sseSink) ping() error {
	if err := o.write([]byte(o.beat)); err != nil {
		return err
	}
	return o.flush()
}

func (o *sseSink) flush() error {
	if err := o.rc.Flush(); err != nil {
		return errWrite
	}
	return nil
}
