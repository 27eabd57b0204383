package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gatehouse/handlers"
	"gatehouse/orchestrator/people"
)

// over ends a task, so that its thread can go on.
func (h *house) over(task string) {
	h.Helper()
	t, err := h.store.Task(h.ctx, task)
	h.must(err)
	_, err = h.engine.Cancel(h.ctx, t.RootID, "test")
	h.must(err)
}

// names lists what the API has of a list, in its order.
func (h *house) names(token, path, field string) string {
	h.Helper()
	var all []string
	for _, x := range h.expect(http.StatusOK, "", "GET", v1+path, token, "").json(h.T)["items"].([]any) {
		all = append(all, fmt.Sprint(x.(map[string]any)[field]))
	}
	return strings.Join(all, ", ")
}

// A thread is gone on with by the WebSocket and by the API, and is nobody else's.
func TestAThreadIsGoneOnWithAndIsOnesOwn(t *testing.T) {
	h := open(t)
	dora, ann := h.user("dora", people.Operator), h.user("ann", people.Operator)
	token, other := h.token(dora), h.token(ann)
	l := h.line(token)
	l.send(map[string]any{"type": "chat", "text": "first", "agent": "coder", "key": "1"})
	first := l.hear().TaskID
	l.send(map[string]any{"type": "chat", "text": "too early", "thread": first, "key": "2"})
	m := l.hear()
	for ; m.Key != "2"; m = l.hear() {
		if m.Type == handlers.ChatDone {
			t.Fatal("the first message has ended")
		}
	}
	if m.Type != handlers.ChatError || m.Code != "not_ended" || !strings.Contains(m.Text, "another thread") {
		t.Errorf("while the first is under way: %+v", m)
	}
	h.over(first)
	again := h.line(token)
	again.send(map[string]any{"type": "chat", "text": "second", "thread": first, "key": "3"})
	second := again.hear()
	if second.Key != "3" || second.Agent != "coder" || second.Type != handlers.ChatProgress {
		t.Fatalf("the follow-up: %+v", second)
	}
	h.over(second.TaskID)
	body := `{"text": "third", "follows": "` + second.TaskID[len(second.TaskID)-8:] + `"}`
	h.expect(http.StatusNotFound, "not_found", "POST", v1+"/tasks", other, body)
	third := h.expect(http.StatusAccepted, "", "POST", v1+"/tasks", token, body).json(t)["id"].(string)
	task := h.expect(http.StatusOK, "", "GET", v1+"/tasks/"+third, token, "").json(t)
	if task["thread"] != first || task["agent"] != "coder" {
		t.Errorf("the third is %v", task)
	}
	lone := h.line(token)
	lone.send(map[string]any{"type": "chat", "text": "something else", "key": "4"})
	lone.hear()
	if got := h.names(token, "/chat/threads", "title"); got != "something else, first" {
		t.Errorf("the threads are %s", got)
	}
	if got := h.names(token, "/chat/threads", "count"); got != "1, 3" {
		t.Errorf("they have %s tasks", got)
	}
	if got := h.names(token, "/chat?thread="+second.TaskID, "text"); got != "third, second, first" {
		t.Errorf("the thread is %s", got)
	}
	if got := h.names(token, "/chat", "text"); got != "something else, second, first" { // the third was sent from elsewhere
		t.Errorf("the conversation is %s", got)
	}
	page := h.expect(http.StatusOK, "", "GET", v1+"/chat/threads?limit=1", token, "").json(t)
	if got := h.names(token, "/chat/threads?before="+page["next"].(string), "title"); got != "first" {
		t.Errorf("the next page is %s", got)
	}
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/chat/threads?before=x", token, "")

	if got := h.names(other, "/chat/threads", "title"); got != "" {
		t.Errorf("ann has threads: %s", got)
	}
	h.expect(http.StatusNotFound, "not_found", "GET", v1+"/chat?thread="+first, other, "")
	hers := h.line(other)
	hers.send(map[string]any{"type": "chat", "text": "mine now", "thread": first, "key": "5"})
	if m := hers.hear(); m.Code != "not_found" || m.Key != "5" {
		t.Errorf("ann goes on with dora's thread: %+v", m)
	}
}
