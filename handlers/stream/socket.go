package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/people"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"
)

// Limits of one WebSocket.
const (
	maxMessage       = orchestrator.MaxText + 4096 // bytes of what a client sends at once
	maxSubscriptions = 32
	silence          = 60 * time.Second // without a pong the connection is dead
	pingEvery        = 25 * time.Second
)

// incoming is what a client sends.
type incoming struct {
	Type   string `json:"type"` // subscribe or chat
	TaskID string `json:"task_id"`
	After  int64  `json:"after"`
	Text   string `json:"text"`
	Agent  string `json:"agent"`
	Key    string `json:"key"` // of a chat message: sent again it is the same task
	// Repository is for chat.
	Repository string `json:"repository"`
}

// refusal tells a client why a message was not taken.
type refusal struct {
	Type    string `json:"type"` // always "error"
	Code    string `json:"code"`
	Message string `json:"message"`
	TaskID  string `json:"task_id,omitempty"`
	// Text is Message again and Key that of the message, where a chat message was refused.
	Text string `json:"text,omitempty"`
	Key  string `json:"key,omitempty"`
}

// socket is one WebSocket: one goroutine reads, one for each subscription writes.
type socket struct {
	streams *Streams
	conn    *websocket.Conn
	who     handlers.Caller
	cancel  context.CancelFunc
	readers sync.WaitGroup
	open    atomic.Int32 // subscriptions that have not ended
	next    time.Time    // no chat message before; only the reading goroutine looks

	mu sync.Mutex // one writer at a time
}

// Socket answers GET /ws. Browsers have to come from a page of ours; programs
// authenticate with a bearer token, which no other site can send.
func (s *Streams) Socket(c echo.Context) error {
	who, _ := handlers.Who(c)
	up := websocket.Upgrader{CheckOrigin: s.SameOrigin, ReadBufferSize: 4096, WriteBufferSize: 4096, HandshakeTimeout: writeLimit}
	if who.Session && c.Request().Header.Get(echo.HeaderOrigin) == "" {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A browser names its page here and this request does not. Use a token outside browsers.")
	}
	if !websocket.IsWebSocketUpgrade(c.Request()) {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "This address speaks WebSocket. Connect with a WebSocket client.")
	}
	if !s.SameOrigin(c.Request()) {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Another site asked for this stream. Open Gatehouse itself.")
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	conn, err := up.Upgrade(c.Response(), c.Request(), nil)
	if err != nil {
		return nil // the upgrader has answered
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Request().Context()))
	w := &socket{streams: s, conn: conn, who: who, cancel: cancel}
	w.readers.Go(func() { w.keepAlive(ctx) })
	w.listen(ctx)
	cancel()
	w.readers.Wait()
	return nil
}

// keepAlive pings, looks after the session, and closes the connection at the end.
func (w *socket) keepAlive(ctx context.Context) {
	ping, check := time.NewTicker(pingEvery), time.NewTicker(rechecks*heartbeat)
	defer ping.Stop()
	defer check.Stop()
	code, text := websocket.CloseNormalClosure, ""
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-w.streams.closing:
			code, text = websocket.CloseServiceRestart, "the server is shutting down"
			w.cancel()
		case <-check.C:
			if w.who.Alive != nil && !w.who.Alive(ctx) {
				code, text = websocket.ClosePolicyViolation, "signed out"
				w.cancel()
			}
		case <-ping.C:
			if w.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeLimit)) != nil {
				w.cancel()
			}
		}
	}
	// Whoever is gone does not hear it; closing is what ends the reading goroutine.
	_ = w.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
	_ = w.conn.Close()
}

// listen takes the client's messages until the connection ends.
func (w *socket) listen(ctx context.Context) {
	w.conn.SetReadLimit(maxMessage)
	extend := func(string) error { return w.conn.SetReadDeadline(time.Now().Add(silence)) }
	w.conn.SetPongHandler(extend)
	for {
		if extend("") != nil {
			return
		}
		kind, body, err := w.conn.ReadMessage()
		if err != nil {
			return
		}
		if err := w.take(ctx, kind, body); err != nil {
			if w.refuse(err, "") != nil {
				return
			}
		}
	}
}

// take acts on one message.
func (w *socket) take(ctx context.Context, kind int, body []byte) error {
	var in incoming
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if kind != websocket.TextMessage || dec.Decode(&in) != nil {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, `That is not a message of ours. Send {"type":"subscribe","task_id":"…","after":0} or {"type":"chat","text":"…"}.`)
	}
	if w.who.Alive != nil && !w.who.Alive(ctx) { // not only each minute: a message makes a task
		w.cancel()
		return handlers.Refuse(handlers.CodeUnauthorized, "You are signed out, or have other rights now. Connect again.")
	}
	switch in.Type {
	case "subscribe":
		return w.subscribe(ctx, in)
	case "chat":
		if err := w.chat(ctx, in); err != nil {
			return w.refuseMessage(err, in)
		}
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeBadRequest, "There is no message type %.40q. Use subscribe or chat.", in.Type)
}

func (w *socket) subscribe(ctx context.Context, in incoming) error {
	r := reader{cursor: max(in.After, 0), who: w.who}
	if !w.who.Has(people.DelegationsRead) {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Reading delegations needs the right delegations:read.")
	}
	if in.TaskID != "" {
		var err error
		if r.taskID, r.only, err = handlers.Scope(ctx, w.streams.Ids, w.who, in.TaskID); err != nil {
			return err
		}
	} else if w.who.Run != nil {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run sees its own task only. Name it in task_id.")
	}
	return w.start(ctx, r, socketSink{w})
}

// start runs a reader beside the others of this connection.
func (w *socket) start(ctx context.Context, r reader, out sink) error {
	if n := w.open.Load(); n >= maxSubscriptions { // only the reading goroutine adds
		return orchestrator.Errorf(orchestrator.CodeConflict, "This connection has %d subscriptions, which is the limit. Open another one.", n)
	}
	w.open.Add(1)
	w.readers.Go(func() {
		defer w.open.Add(-1)
		err := w.streams.pump(ctx, r, out)
		switch {
		case err == nil || errors.Is(err, errDone) || errors.Is(err, context.Canceled):
		case errors.Is(err, errWrite):
			w.cancel()
		default:
			w.streams.Log.Warn("a subscription ended early", "task", r.taskID, "err", err)
			if w.refuse(err, r.taskID) != nil {
				w.cancel()
			}
		}
	})
	return nil
}

// refuse tells the client what was wrong; what is not for people stays in the log.
func (w *socket) refuse(err error, taskID string) error {
	out := refusal{Type: "error", Code: orchestrator.CodeOf(err), Message: err.Error(), TaskID: taskID}
	if out.Code == "" {
		w.streams.Log.Error("a WebSocket message failed", "err", err)
		out.Code, out.Message = "internal", "That failed on our side. Subscribe again after the last event you have."
	}
	return w.json(out)
}

// refuseMessage is refuse for a chat message, whose sender has to know which it was.
func (w *socket) refuseMessage(err error, in incoming) error {
	f := handlers.FaultOf(err)
	if f.ID != "" {
		w.streams.Log.Error("a chat message failed", "id", f.ID, "err", err)
	}
	return w.json(refusal{Type: "error", Code: f.Code, Message: f.Message, Text: f.Message, Key: in.Key, TaskID: in.TaskID})
}

func (w *socket) json(v any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn.SetWriteDeadline(time.Now().Add(writeLimit)) != nil || w.conn.WriteJSON(v) != nil {
		return errWrite
	}
	return nil
}

// socketSink writes events as they are.
type socketSink struct{ w *socket }

func (o socketSink) frame(f frame) error {
	m, err := f.socket()
	if err != nil {
		return err
	}
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	if o.w.conn.SetWriteDeadline(time.Now().Add(writeLimit)) != nil || o.w.conn.WritePreparedMessage(m) != nil {
		return errWrite
	}
	return nil
}

func (o socketSink) gap(e event.Event) error { return o.w.json(e) }
func (o socketSink) ping() error             { return nil } // the connection pings
func (o socketSink) flush() error            { return nil }
