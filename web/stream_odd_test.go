package web_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"

	"github.com/gorilla/websocket"
)

// Whatever a client says beside what it asks for, it gets a plain stream that ends with its
// connection, and nothing of it stays.
func TestOddClientsOfStreams(t *testing.T) {
	h := open(t)
	eve := h.user("eve", people.Operator)
	task, _ := h.task(eve, "Fix")
	address := strings.TrimPrefix(h.url, "http://")
	who := "Host: " + address + "\r\nAuthorization: Bearer " + h.token(eve) + "\r\n"
	path := "/delegation-stream?id=" + task.ID + " HTTP/1."
	for name, request := range map[string]string{
		"HTTP/1.0":         "GET " + path + "0\r\n" + who + "Accept: text/event-stream\r\n\r\n",
		"an address line":  "GET " + path + "1\r\n" + who + "Accept: text/html, text/event-stream\r\nAccept-Encoding: gzip, br\r\n\r\n",
		"a second request": "GET " + path + "1\r\n" + who + "Accept: text/event-stream\r\n\r\nGET /healthz HTTP/1.1\r\n" + who + "\r\n",
		"a body":           "GET " + path + "1\r\n" + who + "Accept: text/event-stream\r\nContent-Length: 5\r\n\r\nhello",
		"a flood":          "GET " + path + "1\r\n" + who + "Accept: text/event-stream\r\n\r\n" + strings.Repeat("x", 1<<16),
		"only the head":    "HEAD " + path + "1\r\n" + who + "Accept: text/event-stream\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", address)
		h.must(err)
		h.must(conn.SetDeadline(time.Now().Add(30 * time.Second)))
		_, err = conn.Write([]byte(request))
		h.must(err)
		method, _, _ := strings.Cut(request, " ")
		br := bufio.NewReader(conn)
		res, err := http.ReadResponse(br, &http.Request{Method: method})
		h.must(err)
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Content-Encoding") != "" ||
			res.ContentLength > 0 || len(res.TransferEncoding) > 0 || !strings.Contains(res.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d, %v", name, res.StatusCode, res.Header)
		}
		for method == http.MethodGet {
			line, err := br.ReadString('\n')
			if h.must(err); line == "event: task.created\n" {
				break
			}
		}
		h.must(conn.Close())
	}
	h.allEnded()
}

// A client that breaks the protocol of a WebSocket loses its connection, and no other does.
func TestOddClientsOfSockets(t *testing.T) {
	h := open(t)
	eve := h.user("eve", people.Operator)
	task, _ := h.task(eve, "Fix")
	for name, odd := range map[string]func(c *websocket.Conn) error{
		"more than a message may be": func(c *websocket.Conn) error {
			return c.WriteMessage(websocket.TextMessage, make([]byte, orchestrator.MaxText+5000))
		},
		"leaves in a message": func(c *websocket.Conn) error {
			_, err := c.NetConn().Write([]byte{0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4, 'x'})
			if err == nil {
				err = c.Close()
			}
			return err
		},
		"no mask":           func(c *websocket.Conn) error { _, err := c.NetConn().Write([]byte{0x81, 1, 'x'}); return err },
		"an unknown opcode": func(c *websocket.Conn) error { _, err := c.NetConn().Write([]byte{0x83, 0x80, 1, 2, 3, 4}); return err },
		"a subscription too many": func(c *websocket.Conn) error {
			for range 33 {
				h.must(c.WriteJSON(map[string]any{"type": "subscribe", "task_id": task.ID}))
			}
			for {
				var m struct{ Type, Code string }
				h.must(c.ReadJSON(&m))
				if m.Type == "error" && m.Code == orchestrator.CodeConflict {
					return c.Close()
				}
			}
		},
		"a close without a reason": func(c *websocket.Conn) error { return c.WriteMessage(websocket.CloseMessage, nil) },
	} {
		c, _, err := h.socket(h.token(eve), nil)
		h.must(err)
		h.must(c.SetReadDeadline(time.Now().Add(30 * time.Second)))
		if err := odd(c); err != nil {
			t.Logf("%s: %v", name, err) // the server may have ended it before all was written
		}
		for err = nil; err == nil; {
			_, _, err = c.ReadMessage()
		}
		if netErr, ok := err.(net.Error); ok && netErr.Timeout() {
			t.Errorf("%s: goes on", name)
		}
		_ = c.Close() // it may be closed
	}
	h.allEnded()
}

// allEnded waits until no stream is open.
func (h *house) allEnded() {
	h.Helper()
	for end := h.soon(); h.web.Streams.Open() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("%d streams are open", h.web.Streams.Open())
		}
	}
}
