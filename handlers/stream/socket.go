package stream

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/strictjson"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"
)

// Limits of one WebSocket.
const (
	maxMessage       = orchestrator.MaxText + 4096 // bytes of what a client sends at once
	maxSubscriptions = 32
	silence          = 60 * time.Second // without a pong the connection is dead
	pingEvery        = 25 * time.Second
	maxNesting       = 4 // messages are flat
	notOurs          = `That is not a message of ours. Send {"type":"subscribe","task_id":"…","after":0} or {"type":"chat","text":"…"}.`
)

// incoming is what a client sends.
type incoming struct {
	Type   string `json:"type"` // subscribe or chat
	TaskID string `json:"task_id"`
	After  int64  `json:"after"`
	Text   string `json:"text"`
	Agent  string `json:"agent"`
	Key    string `json:"key"` // of a chat message: sent again it is the same task
	// Repository and Handoffs are for chat; Handoffs enables hand-overs under
	// engine.handoffs: opt_in.
	Repository string `json:"repository"`
	Handoffs   bool   `json:"handoffs"`
	// Thread is the task, or any of its thread, that a chat message goes on with.
	Thread string `json:"thread"`
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

// socket is one WebSocket. The library reads; what is written goes through the line, which
// knows what the kernel has taken.
type socket struct {
	*line
	reads *websocket.Conn
	next  time.Time // no chat message before; only whoever takes messages looks
}

// Socket answers GET /ws. Browsers have to come from a page of ours; programs
// authenticate with a bearer token, which no other site can send.
func (s *Streams) Socket(c echo.Context) error {
	who, _ := handlers.Who(c)
	// Clients send little, and what we write the library does not: both buffers may be small, the second never made.
	up := websocket.Upgrader{CheckOrigin: s.SameOrigin, ReadBufferSize: 256, WriteBufferPool: &s.handshakes, HandshakeTimeout: writeLimit}
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
		return turnAway(c, err)
	}
	conn, err := up.Upgrade(c.Response(), c.Request(), nil)
	c.Response().Committed = true // the upgrader has answered
	if err != nil {
		s.leave()
		return nil
	}
	w := &socket{line: s.adopt(conn.NetConn(), webSocket{}, who), reads: conn}
	go w.run(w.listen)
	return nil
}

// webSocket is how a socket says things.
type webSocket struct{}

// What a client is told at the end of a WebSocket.
const (
	closeRestart   = websocket.CloseServiceRestart
	closeSignedOut = websocket.ClosePolicyViolation
)

var pingFrame = socketFrame(websocket.PingMessage, nil)

func (webSocket) beat() ([]byte, time.Duration) { return pingFrame, pingEvery }
func (webSocket) event(f frame) []byte          { return f.socket() }

func (webSocket) gap(e event.Event) ([]byte, error) {
	body, err := json.Marshal(e)
	return socketFrame(websocket.TextMessage, body), err
}

func (webSocket) bye(code int, text string) []byte {
	return socketFrame(websocket.CloseMessage, websocket.FormatCloseMessage(code, text))
}

// socketFrame is a message in one frame as a server sends it (RFC 6455, section 5.2).
func socketFrame(kind int, body []byte) []byte {
	b := append(make([]byte, 0, 10+len(body)), 0x80|byte(kind))
	switch n := len(body); {
	case n <= 125:
		b = append(b, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, body...)
}

// listen takes the client's messages until the connection ends.
func (w *socket) listen() {
	w.reads.SetReadLimit(maxMessage)
	extend := func(string) error { return w.reads.SetReadDeadline(time.Now().Add(silence)) }
	w.reads.SetPongHandler(extend)
	w.reads.SetPingHandler(func(data string) error { return w.write(socketFrame(websocket.PongMessage, []byte(data))) })
	w.reads.SetCloseHandler(func(code int, _ string) error {
		w.bye(code, "")
		return nil
	})
	for extend("") == nil {
		kind, body, err := w.reads.ReadMessage()
		if err != nil || !w.heard(kind, body) {
			return
		}
	}
}

// heard acts on one message and reports whether the connection goes on. It does so in a
// goroutine of its own, whose stack, grown by queries, goes with it.
func (w *socket) heard(kind int, body []byte) bool {
	done := make(chan struct{})
	go w.guard(func() {
		defer close(done)
		if err := w.take(w.ctx, kind, body); err != nil && w.refuse(err, "") != nil {
			w.end()
		}
	})
	<-done
	return w.ctx.Err() == nil
}

// take acts on one message.
func (w *socket) take(ctx context.Context, kind int, body []byte) error {
	var in incoming
	if kind != websocket.TextMessage {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, notOurs)
	}
	if err := strictjson.IntoKnown(body, &in, maxNesting); errors.Is(err, strictjson.Err) {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "%s (%w)", notOurs, err)
	} else if err != nil {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, notOurs)
	}
	if !w.alive() { // a message makes a task
		_ = w.refuse(handlers.Refuse(handlers.CodeUnauthorized, "You are signed out, or have other rights now. Connect again."), "")
		w.bye(closeSignedOut, textSignedOut)
		return nil
	}
	switch in.Type {
	case "subscribe":
		return w.listenTo(ctx, in)
	case "chat":
		if err := w.chat(ctx, in); err != nil {
			return w.refuseMessage(err, in)
		}
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeBadRequest, "There is no message type %.40q. Use subscribe or chat.", in.Type)
}

func (w *socket) listenTo(ctx context.Context, in incoming) error {
	r := reader{cursor: max(in.After, 0), who: w.who}
	if !w.who.Has(people.DelegationsRead) {
		return notReadable
	}
	if in.TaskID != "" {
		var err error
		if r.taskID, r.only, err = handlers.Scope(ctx, w.streams.Ids, w.who, in.TaskID); err != nil {
			return err
		}
	} else if w.who.Run != nil {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run sees its own task only. Name it in task_id.")
	}
	return w.subscribe(r, &plain{line: w.line}, maxSubscriptions)
}

// refuse tells the client what was wrong; what is not for people stays in the log.
func (w *socket) refuse(err error, taskID string) error {
	return webSocket{}.refuse(w.line, err, taskID)
}

// refuse is what a subscription that failed says, too: the connection goes on.
func (webSocket) refuse(l *line, err error, taskID string) error {
	out := refusal{Type: "error", Code: orchestrator.CodeOf(err), Message: err.Error(), TaskID: taskID}
	if out.Code == "" {
		l.streams.Log.Error("a WebSocket message failed", "err", err)
		out.Code, out.Message = "internal", "That failed on our side. Subscribe again after the last event you have."
	}
	return l.json(out)
}

// refuseMessage is refuse for a chat message, whose sender has to know which it was.
func (w *socket) refuseMessage(err error, in incoming) error {
	f := handlers.FaultOf(err)
	if f.ID != "" {
		w.streams.Log.Error("a chat message failed", "id", f.ID, "err", err)
	}
	return w.json(refusal{Type: "error", Code: f.Code, Message: f.Message, Text: f.Message, Key: in.Key, TaskID: in.TaskID})
}

// json says what is not the same for all.
func (l *line) json(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.write(socketFrame(websocket.TextMessage, body))
}
