package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"

	"github.com/gorilla/websocket"
)

// say appends n events to a task, each in its own transaction.
func (h *house) say(taskID, delegationID string, n int) {
	for i := range n {
		err := h.store.InTask(h.ctx, taskID, func(tx orchestrator.Tx) error {
			return tx.Append(h.ctx, event.Event{Type: event.Progress, DelegationID: delegationID, Actor: "coder", Data: event.Data(map[string]any{"text": strconv.Itoa(i)})})
		})
		if err != nil {
			h.Error(err)
			return
		}
	}
}

// sse reads events from path until take says stop; it returns the last id.
func (h *house) sse(path, token, last string, take func(id, kind string, e event.Event) bool) string {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", h.url+path, nil)
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Error(err)
		return last
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		h.Errorf("%s: %d %s", path, res.StatusCode, kind)
		return last
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	var id, kind string
	var e event.Event
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				h.Errorf("%q: %v", value, err)
			}
		case "":
			if kind == "" {
				continue
			}
			if id != "" {
				last = id
			}
			if !take(id, kind, e) {
				return last
			}
			id, kind, e = "", "", event.Event{}
		}
	}
	h.Errorf("%s ended after %s: %v", path, last, lines.Err())
	return last
}

// Readers that are cut off again and again while events are written get every event
// once and in order, by resuming after the last id.
func TestNoEventIsLostOrDoubledAcrossCutConnections(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, root := h.task(dora, "Fix")
	const writers, each, readers = 3, 100, 4
	total := int64(2 + writers*each) // with task.created and delegation.queued
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() { h.say(task.ID, root.ID, each) })
	}
	for i := range readers {
		wg.Go(func() {
			last, next := "", int64(1)
			for next <= total {
				budget := 7 + 13*i // then the connection is cut
				last = h.sse(v1+"/delegations/"+task.ID+"/events", token, last, func(id, kind string, e event.Event) bool {
					if e.N != next || id != strconv.FormatInt(next, 10) || kind != string(e.Type) {
						t.Errorf("reader %d got n %d, id %s, %s; want %d", i, e.N, id, kind, next)
					}
					next = e.N + 1
					budget--
					return next <= total && budget > 0
				})
				if t.Failed() {
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestTheGlobalStreamResumesByPosition(t *testing.T) {
	h := open(t)
	dora, aud := h.user("dora", people.Operator), h.user("aud", people.Auditor)
	operator, auditor := h.token(dora), h.token(aud)
	const tasks = 6
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range tasks {
			task, root := h.task(dora, fmt.Sprintf("task %d", i))
			h.say(task.ID, root.ID, 10)
		}
	})
	for name, token := range map[string]string{"operator": operator, "auditor": auditor} {
		wg.Go(func() {
			last, pos, seen, budget := "", int64(0), map[string]int64{}, 0
			done := func() bool {
				n := 0
				for id, at := range seen {
					if id != event.System && at == 12 {
						n++
					}
				}
				return n == tasks
			}
			for !done() && !t.Failed() {
				budget = 17
				last = h.sse(v1+"/events?after=0", token, last, func(id, _ string, e event.Event) bool {
					p, err := strconv.ParseInt(id, 10, 64)
					if err != nil || p <= pos {
						t.Errorf("%s: position %q after %d", name, id, pos)
					}
					if e.TaskID == event.System && name == "operator" {
						t.Error("an operator sees who signs in")
					}
					if e.N != seen[e.TaskID]+1 && e.TaskID != event.System {
						t.Errorf("%s: n %d of %s after %d", name, e.N, e.TaskID, seen[e.TaskID])
					}
					pos, seen[e.TaskID] = p, e.N
					budget--
					return budget > 0 && !done()
				})
			}
		})
	}
	wg.Wait()
}

func TestACursorOfAnotherDatabaseIsAGap(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, root := h.task(dora, "Fix")
	h.sse("/delegation-stream?id="+task.ID+"&after=5000", token, "", func(id, kind string, _ event.Event) bool {
		if kind != "gap" || id != "" {
			t.Errorf("first came %s with id %q", kind, id)
		}
		return false
	})
	first := true
	h.sse("/delegation-stream?id="+root.ID, token, "", func(_, kind string, e event.Event) bool {
		if first && (e.N != 1 || e.Type != event.TaskCreated) {
			t.Errorf("a delegation's stream begins with %s n %d", kind, e.N)
		}
		first = false
		return e.N < 2
	})
}

func (h *house) socket(token string, header http.Header) (*websocket.Conn, *http.Response, error) {
	if header == nil {
		header = http.Header{}
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return websocket.DefaultDialer.DialContext(h.ctx, "ws"+strings.TrimPrefix(h.url, "http")+"/ws", header)
}

func TestAWebSocketSubscribesAndChats(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	task, root := h.task(dora, "Fix")
	c, _, err := h.socket(h.token(dora), nil)
	h.must(err)
	defer c.Close()
	h.must(c.SetReadDeadline(time.Now().Add(20 * time.Second)))
	h.must(c.WriteJSON(map[string]any{"type": "subscribe", "task_id": task.ID, "after": 1}))
	go h.say(task.ID, root.ID, 5)
	for n := int64(2); n <= 7; n++ {
		var e event.Event
		h.must(c.ReadJSON(&e))
		if e.N != n || e.TaskID != task.ID {
			t.Fatalf("got n %d, want %d", e.N, n)
		}
	}
	h.must(c.WriteJSON(map[string]any{"type": "dance"}))
	var refused struct{ Type, Code, Message string }
	h.must(c.ReadJSON(&refused))
	if refused.Type != "error" || refused.Code != "bad_request" {
		t.Errorf("an unknown message got %+v", refused)
	}
	for _, odd := range []string{`{"type":"chat","text":"a","text":"b"}`, `{"type":"chat","Text":"a"}`, `{"type":"chat","text":"a"}{}`} {
		h.must(c.WriteMessage(websocket.TextMessage, []byte(odd)))
		h.must(c.ReadJSON(&refused))
		if refused.Type != "error" || refused.Code != "bad_request" {
			t.Errorf("%s, which can be read in two ways, got %+v", odd, refused)
		}
	}
	h.must(c.WriteJSON(map[string]any{"type": "chat", "text": "Fix the loop"}))
	var said struct {
		Type   string `json:"type"`
		TaskID string `json:"task_id"`
	}
	go h.endNewest(dora)
	for said.Type != "done" {
		h.must(c.ReadJSON(&said))
		if said.TaskID == task.ID {
			t.Fatalf("the chat shows another task: %+v", said)
		}
	}
}

// endNewest cancels the newest task of u once it is there, as a person would.
func (h *house) endNewest(u people.User) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		page, err := h.store.List(h.ctx, orchestrator.Filter{Requester: u.Name, RootsOnly: true, Limit: 1})
		if err == nil && len(page.Items) == 1 && page.Items[0].Text == "Fix the loop" {
			if _, err := h.engine.Cancel(h.ctx, page.Items[0].ID, u.Name); err != nil {
				h.Error(err)
			}
			return
		}
	}
	h.Error("the chat made no task")
}

func TestAnotherSiteGetsNoWebSocket(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	b := h.signIn(dora)
	u := strings.Replace(h.url, "http", "ws", 1)
	req, err := http.NewRequest("GET", h.url, nil)
	h.must(err)
	for _, cookie := range b.client.Jar.Cookies(req.URL) {
		req.AddCookie(cookie)
	}
	for origin, ok := range map[string]bool{"https://evil.example": false, "null": false, "": false, h.url: true} {
		header := http.Header{"Cookie": req.Header["Cookie"]}
		if origin != "" {
			header.Set("Origin", origin)
		}
		c, _, err := websocket.DefaultDialer.DialContext(h.ctx, u+"/ws", header)
		if (err == nil) != ok {
			t.Errorf("Origin %q: %v", origin, err)
		}
		if err == nil {
			h.must(c.Close())
		}
	}
	if c, _, err := h.socket("", nil); err == nil {
		t.Error("a stranger is connected", c.Close())
	}
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	task, _ := h.task(dora, "Fix")
	c, _, err := h.socket(h.token(dora), nil)
	h.must(err)
	defer c.Close()
	h.must(c.WriteJSON(map[string]any{"type": "subscribe", "task_id": task.ID}))
	var e event.Event
	h.must(c.ReadJSON(&e)) // it is under way
	done := make(chan struct{})
	go func() { h.web.Streams.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("streams did not end")
	}
	h.expect(http.StatusServiceUnavailable, "unavailable", "GET", v1+"/delegations/"+task.ID+"/events", h.token(dora), "",
		func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") })
}
