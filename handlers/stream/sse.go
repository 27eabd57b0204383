package stream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"

	"github.com/labstack/echo/v4"
)

// Wanted reports whether a client asks for SSE.
func Wanted(c echo.Context) bool {
	return strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "text/event-stream")
}

// Task streams the events that the id in the address names: /delegations/{id}/events
// and /delegation-stream?id=. Without a cursor it begins at the first event.
func (s *Streams) Task(c echo.Context) error {
	id := cmp.Or(c.Param("id"), c.QueryParam("id"))
	who, _ := handlers.Who(c)
	taskID, only, err := handlers.Scope(c.Request().Context(), s.Ids, who, id)
	if err != nil {
		return err
	}
	cursor, err := cursorOf(c, 0)
	if err != nil {
		return err
	}
	return s.serve(c, reader{taskID: taskID, only: only, cursor: cursor, who: who}, false)
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
	return s.serve(c, reader{cursor: cursor, who: who}, session != "")
}

// cursorOf reads where to resume. A browser that reconnects sends Last-Event-ID,
// which is newer than the address it first connected to.
func cursorOf(c echo.Context, absent int64) (int64, error) {
	s := cmp.Or(c.Request().Header.Get("Last-Event-ID"), c.QueryParam("after"))
	if s == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, orchestrator.Errorf(orchestrator.CodeBadRequest, "The cursor %.40q is not a number from 0 on. Use the id of the last event.", s)
	}
	return n, nil
}

// serve takes the connection over and lets the handler return: what net/http keeps for an
// answer under way is several times what a stream needs.
func (s *Streams) serve(c echo.Context, r reader, page bool) error {
	if !s.SameOrigin(c.Request()) {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Another site asked for this stream. Open Gatehouse itself.")
	}
	if err := s.enter(); err != nil {
		return turnAway(c, err)
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set("X-Accel-Buffering", "no")
	if c.Request().Method == http.MethodHead {
		s.leave()
		return c.NoContent(http.StatusOK)
	}
	h.Set("Date", s.Now().UTC().Format(http.TimeFormat))
	h.Set(echo.HeaderConnection, "close") // where the connection ends the stream does, and nothing else
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	if err := h.Write(&head); err != nil {
		s.leave()
		return err
	}
	head.WriteString("\r\nretry: 2000\n\n")
	conn, _, err := c.Response().Hijack()
	if err != nil {
		s.leave()
		return fmt.Errorf("take over a connection for a stream: %w", err)
	}
	c.Response().Committed = true // the line answers
	l := s.adopt(conn, sse{page: page}, r.who)
	if conn.SetReadDeadline(time.Time{}) != nil || l.write(head.Bytes()) != nil {
		l.end() // and the line's own goroutine finds that out
	}
	go l.run(func() {
		if l.subscribe(r, &plain{line: l}, 1) == nil {
			l.discard()
		}
	})
	return nil
}

// sse is the text/event-stream format. Programs get the types as names of events. A page gets
// all under no name, so that it hears types that it does not know, and those it has no use
// for not at all; the type is in the body.
type sse struct{ page bool }

// Heartbeats. Scripts cannot see comments, so pages get an event: only by that do they
// know a line that was cut without a word from one on which nothing happens.
var (
	commentBeat = []byte(": alive\n\n")
	eventBeat   = []byte("event: alive\ndata: {}\n\n")
)

func (p sse) beat() ([]byte, time.Duration) {
	if p.page {
		return eventBeat, heartbeat
	}
	return commentBeat, heartbeat
}

func (p sse) event(f frame) []byte {
	switch {
	case !p.page:
		return f.sse
	case f.event.Type.Heard():
		return f.page()
	}
	return nil
}

// gap has no id: a reconnect resumes after the last event that was really sent.
func (p sse) gap(e event.Event) ([]byte, error) {
	body, err := json.Marshal(e)
	name := "event: gap\n"
	if p.page {
		name = ""
	}
	return slices.Concat([]byte(name+"data: "), body, []byte("\n\n")), err
}

// bye says nothing: the client connects again and is told there.
func (sse) bye(int, string) []byte { return nil }
