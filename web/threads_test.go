package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/handlers"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
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
	if m.Type != handlers.ChatError || m.Code != "cannot_hear" || m.Text == "" {
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

// What is said in a thread while its agent works is told to that agent, once, and shown there.
func TestWhatIsSaidInAThreadThatWorksIsTold(t *testing.T) {
	h := open(t)
	h.engine.Kinds = map[agent.Kind]agent.Runner{agent.Workflow: agenttest.Like{Of: agent.Traits{Hears: func(agent.Spec) bool { return true }}}}
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	l := h.line(token)
	l.send(map[string]any{"type": "chat", "text": "begin", "agent": "kik", "key": "1"})
	first := l.hear()
	for range 2 {
		again := h.line(token)
		again.send(map[string]any{"type": "chat", "text": "and mind the tests", "thread": first.TaskID, "key": "2"})
		if m := again.hear(); m.TaskID != first.TaskID || m.Thread != first.TaskID || m.Key != "2" || m.Code != "" {
			t.Errorf("what was told: %+v", m)
		}
	}
	told := h.expect(http.StatusAccepted, "", "POST", v1+"/tasks", token, `{"text": "and hurry", "follows": "`+first.TaskID+`"}`).json(t)
	if told["id"] != first.TaskID || !strings.HasPrefix(fmt.Sprint(told["message_id"]), "msg_") {
		t.Errorf("told by the API: %v", told)
	}
	root, err := h.store.Delegation(h.ctx, first.DelegationID)
	h.must(err)
	if said := root.Work.Said(); len(said) != 2 || said[0].Text != "and mind the tests" || said[0].From != "dora" {
		t.Errorf("the agent is told %+v", said)
	}
	page := h.signIn(dora).get("/chat?thread=" + first.TaskID)
	if n := strings.Count(page.log().body, "and mind the tests"); n != 1 {
		t.Errorf("the thread shows it %d times", n)
	}
	h.over(first.TaskID)
	again := h.line(token) // the key still means what was told
	again.send(map[string]any{"type": "chat", "text": "and mind the tests", "thread": first.TaskID, "key": "2"})
	if m := again.hear(); m.TaskID != first.TaskID {
		t.Errorf("sent again when it was over: %+v", m)
	}
}

// With forms alone: a thread is opened, gone on with, and left for a new one.
func TestThreadsWorkWithFormsAlone(t *testing.T) {
	h := open(t)
	dora, ann := h.user("dora", people.Operator), h.user("ann", people.Operator)
	b := h.signIn(dora)
	sent := b.post("/chat", url.Values{"text": {"the <b>first</b> one"}, "agent": {"coder"}, "key": {"1"}})
	first := sent.Request.URL.Query().Get("thread")
	if sent.StatusCode != http.StatusOK || first == "" || !strings.Contains(sent.body, `name="thread" value="`+first+`"`) || !strings.Contains(sent.body, "<h1>the &lt;b&gt;first&lt;/b&gt; one</h1>") {
		t.Fatalf("after the first message: %d %s", sent.StatusCode, sent.Request.URL)
	}
	early := b.post("/chat", url.Values{"text": {"keep these words"}, "agent": {"coder"}, "thread": {first}})
	if early.StatusCode != http.StatusConflict || !strings.Contains(early.body, "keep these words") || !strings.Contains(early.body, `name="thread" value="`+first+`"`) {
		t.Errorf("while it works: %d", early.StatusCode)
	}
	h.over(first)
	second := b.post("/chat", url.Values{"text": {"the second one"}, "agent": {"coder"}, "thread": {first}, "key": {"2"}})
	if second.Request.URL.Query().Get("thread") != first || strings.Count(second.log().body, `class="chat-item"`) != 2 {
		t.Errorf("after the follow-up: %s", second.Request.URL)
	}
	other := b.post("/chat", url.Values{"text": {"/new another matter"}, "agent": {"coder"}, "thread": {first}, "key": {"3"}})
	thread := other.Request.URL.Query().Get("thread")
	if thread == first || !strings.Contains(other.body, "<h1>another matter</h1>") || strings.Count(other.log().body, `class="chat-item"`) != 1 {
		t.Errorf("after /new: %s", other.Request.URL)
	}
	if a := b.post("/chat", url.Values{"text": {" /new "}, "agent": {"coder"}, "thread": {first}}); a.Request.URL.Path != "/chat" || a.Request.URL.RawQuery != "" {
		t.Errorf("after /new alone: %s", a.Request.URL)
	}
	if a := b.post("/chat", url.Values{"text": {"/newest files?"}, "agent": {"coder"}, "key": {"4"}}); !strings.Contains(a.body, "<h1>/newest files?</h1>") {
		t.Errorf("a word that begins like it: %s", a.Request.URL)
	}
	all := b.get("/chat")
	list, _, _ := strings.Cut(all.body, `id="chat-log"`)
	if n := strings.Count(list, `href="/chat?thread=`); n != 3 || !strings.Contains(list, "2 messages") {
		t.Errorf("the list has %d threads", n)
	}
	hers := h.signIn(ann)
	if a := hers.get("/chat?thread=" + first); a.StatusCode != http.StatusNotFound || strings.Contains(a.body, "second one") {
		t.Errorf("ann opens dora's thread: %d", a.StatusCode)
	}
	if a := hers.post("/chat", url.Values{"text": {"mine"}, "thread": {first}}); a.StatusCode != http.StatusNotFound {
		t.Errorf("ann goes on with dora's thread: %d", a.StatusCode)
	}
	if a := hers.get("/chat"); strings.Contains(a.body, "another matter") {
		t.Error("ann sees dora's threads")
	}
}
