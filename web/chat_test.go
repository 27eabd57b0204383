package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"

	"github.com/gorilla/websocket"
)

// line is one WebSocket of a person.
type line struct {
	*house
	*websocket.Conn
}

func (h *house) line(token string) *line {
	h.Helper()
	c, _, err := h.socket(token, nil)
	h.must(err)
	h.Cleanup(func() { c.Close() }) //nolint:errcheck // the test may have closed it
	h.must(c.SetReadDeadline(time.Now().Add(20 * time.Second)))
	return &line{h, c}
}

func (l *line) send(message map[string]any) {
	l.Helper()
	l.must(l.WriteJSON(message))
}

// hear reads the next chat message; a refusal's sentence is its text.
func (l *line) hear() handlers.ChatMessage {
	l.Helper()
	var m handlers.ChatMessage
	l.must(l.ReadJSON(&m))
	return m
}

// conversation is what the API gives of a person's chat, oldest first.
func (h *house) conversation(token, query string) (texts []string, next string) {
	h.Helper()
	body := h.expect(http.StatusOK, "", "GET", v1+"/chat"+query, token, "").json(h.T)
	for _, x := range body["items"].([]any) {
		texts = append([]string{x.(map[string]any)["text"].(string)}, texts...)
	}
	next, _ = body["next"].(string)
	return texts, next
}

// log is the conversation of a page, without the list of threads.
func (a answer) log() answer {
	_, a.body, _ = strings.Cut(a.body, `id="chat-log"`)
	return a
}

// A connection that breaks at any point loses nothing and doubles nothing: the sender
// repeats the message under its key.
func TestAChatMessageSentAgainIsTheSameTask(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	first := h.line(token)
	first.send(map[string]any{"type": "chat", "text": "Fix the loop", "key": "k-1"})
	m := first.hear()
	if m.Key != "k-1" || m.TaskID == "" || m.Type != handlers.ChatProgress {
		t.Fatalf("the first message back names no task: %+v", m)
	}
	if task, err := h.store.Task(h.ctx, m.TaskID); err != nil || task.Via != origin.From(origin.Chat) || task.Chat != dora.ID { // P15
		t.Errorf("its task came by %q of %q: %v", task.Via, task.Chat, err)
	}
	h.must(first.Close())
	for range 3 {
		l := h.line(token)
		l.send(map[string]any{"type": "chat", "text": "Fix the loop", "key": "k-1"})
		if again := l.hear(); again.TaskID != m.TaskID || again.Key != "k-1" {
			t.Errorf("sent again it is %s, want %s", again.TaskID, m.TaskID)
		}
		h.must(l.Close())
	}
	b := h.signIn(dora)
	b.post("/chat", url.Values{"text": {"Fix the loop"}, "agent": {"kik"}, "key": {"k-1"}})
	if said, _ := h.conversation(token, ""); !slices.Equal(said, []string{"Fix the loop"}) {
		t.Errorf("the conversation is %q", said)
	}
}

func TestARefusedChatMessageSaysWhichAndWhy(t *testing.T) {
	h := open(t)
	l := h.line(h.token(h.user("dora", people.Operator)))
	for name, c := range map[string]struct {
		message map[string]any
		code    string
	}{
		"no text":      {map[string]any{"type": "chat", "text": " ", "key": "a"}, "bad_request"},
		"unknown":      {map[string]any{"type": "chat", "text": "x", "agent": "nobody", "key": "b"}, "unknown_agent"},
		"other place":  {map[string]any{"type": "chat", "text": "x", "repository": "nowhere", "key": "c"}, "not_found"},
		"no such task": {map[string]any{"type": "chat", "task_id": "tsk_00000000000000000000000000", "key": "d"}, "not_found"},
	} {
		l.send(c.message)
		m := l.hear()
		if m.Type != handlers.ChatError || m.Code != c.code || m.Key != c.message["key"] || m.Text == "" {
			t.Errorf("%s: %+v, want %s", name, m, c.code)
		}
	}
	reader := h.line(h.token(h.user("aud", people.Auditor)))
	reader.send(map[string]any{"type": "chat", "text": "x", "key": "e"})
	if m := reader.hear(); m.Code != "forbidden" || m.Key != "e" {
		t.Errorf("an auditor sent a task: %+v", m)
	}
}

// What an agent's kind reports comes as chat messages; a reader that was away goes on
// where it stopped.
func TestAChatIsFollowedFromWhereItStopped(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	l := h.line(token)
	l.send(map[string]any{"type": "chat", "text": "Fix the loop", "key": "k"})
	task := l.hear().TaskID
	stored, err := h.store.Task(h.ctx, task)
	h.must(err)
	root := stored.RootID
	queued := l.hear()
	if queued.Type != handlers.ChatProgress || queued.N != 2 || queued.Text != "kik is next in line" {
		t.Errorf("after it was stored: %+v", queued)
	}
	h.must(l.Close())
	h.must(h.store.InTask(h.ctx, task, func(tx orchestrator.Tx) error {
		for _, e := range []event.Event{
			{Type: event.Acknowledged, Actor: "kik", Data: event.Data(map[string]any{"agent": "kik", "attempt": 1})},
			{Type: event.Progress, Actor: "kik", Data: event.Data(map[string]any{"text": "reading"})},
			{Type: event.UsageRecorded, Actor: "kik", Data: event.Data(map[string]any{"input_tokens": 3})},
			{Type: event.Delegated, Actor: "kik", Data: event.Data(map[string]any{"to": "coder", "title": "do it"})},
			{Type: event.DelegationRefused, Actor: "kik", Data: event.Data(map[string]any{"to": "kik", "message": "a cycle"})},
		} {
			e.DelegationID = root
			if err := tx.Append(h.ctx, e); err != nil {
				return err
			}
		}
		return nil
	}))
	again := h.line(token)
	again.send(map[string]any{"type": "chat", "task_id": task, "after": queued.N})
	for _, want := range []string{"thinking 3 kik works", "progress 4 reading", "progress 6 handed to coder: do it", "progress 7 could not hand to kik: a cycle"} {
		if m := again.hear(); fmt.Sprint(m.Type, " ", m.N, " ", m.Text) != want {
			t.Errorf("got %+v, want %s", m, want)
		}
	}
	_, err = h.engine.Cancel(h.ctx, root, "dora")
	h.must(err)
	if m := again.hear(); m.Type != handlers.ChatError || m.Text == "" {
		t.Errorf("the end of a cancelled task: %+v", m)
	}
	if m := again.hear(); m.Type != handlers.ChatDone || m.State != "cancelled" || m.TaskID != task {
		t.Errorf("nothing says that it is over: %+v", m)
	}
	late := h.line(token)
	late.send(map[string]any{"type": "chat", "task_id": task, "after": 1_000_000})
	if m := late.hear(); m.Type != handlers.ChatError {
		t.Errorf("who has seen all of an ended task gets %+v", m)
	}
	if m := late.hear(); m.Type != handlers.ChatDone {
		t.Errorf("who has seen all of an ended task gets %+v", m)
	}
}

// A long conversation on one connection does not run into the limit of what is open.
func TestEndedChatsMakeRoomOnAConnection(t *testing.T) {
	h := open(t)
	l := h.line(h.token(h.user("dora", people.Operator)))
	for i := range 40 {
		l.send(map[string]any{"type": "chat", "text": "Fix the loop", "key": fmt.Sprint(i)})
		m := l.hear()
		if m.TaskID == "" {
			t.Fatalf("message %d: %+v", i, m)
		}
		_, err := h.engine.Cancel(h.ctx, m.DelegationID, "dora")
		h.must(err)
		for m.Type != handlers.ChatDone {
			if m = l.hear(); m.Code == "conflict" {
				t.Fatalf("message %d: %s", i, m.Text)
			}
		}
	}
}

// The conversation has a cursor, in the API and on the page, and is nobody else's.
func TestAConversationComesInPagesAndIsOnesOwn(t *testing.T) {
	h := open(t)
	dora, ann := h.user("dora", people.Operator), h.user("ann", people.Operator)
	var want []string
	l := h.line(h.token(dora))
	for i := range 20 { // as fast as they come: their order is kept
		want = append(want, fmt.Sprintf("message %02d", i))
		l.send(map[string]any{"type": "chat", "text": want[i], "key": want[i]})
	}
	for m := l.hear(); m.Key != want[19]; m = l.hear() {
		if m.Code != "" {
			t.Fatalf("refused: %+v", m)
		}
	}
	h.task(dora, "not in the chat")
	var got []string
	for next, more := "", true; more; more = next != "" {
		query := "?limit=7"
		if next != "" {
			query += "&before=" + next
		}
		var page []string
		page, next = h.conversation(h.token(dora), query)
		got = append(page, got...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("in pages: %q", got)
	}
	if got, _ := h.conversation(h.token(ann), ""); len(got) != 0 {
		t.Errorf("ann reads dora's conversation: %q", got)
	}
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/chat?before=x", h.token(dora), "")

	b := h.signIn(dora)
	page := b.get("/chat").log()
	if strings.Contains(page.body, "message 04") || !strings.Contains(page.body, "message 05") || strings.Contains(page.body, "not in the chat") {
		t.Error("the first page is not the newest 15")
	}
	if strings.Index(page.body, "message 05") > strings.Index(page.body, "message 19") {
		t.Error("the newest message is not at the bottom")
	}
	_, rest, _ := strings.Cut(page.body, `href="/chat?before=`)
	older, _, _ := strings.Cut(rest, `"`)
	if a := b.get("/chat?before=" + older).log(); !strings.Contains(a.body, "message 00") || strings.Contains(a.body, "message 05") {
		t.Error("the older page is another one")
	}
	if a := b.get("/chat?before=1%20or%201"); a.StatusCode != http.StatusBadRequest {
		t.Errorf("a cursor that is none: %d", a.StatusCode)
	}
	root, err := h.store.List(h.ctx, orchestrator.Filter{Conversation: dora.ID, Limit: 1})
	h.must(err)
	if a := h.signIn(ann).get("/chat?task=" + root.Items[0].TaskID); a.StatusCode != http.StatusNotFound {
		t.Errorf("ann opens dora's message: %d", a.StatusCode)
	}
}

// With forms alone: a message, its refusal with the text kept, a verdict on a card.
func TestTheChatWorksWithFormsAlone(t *testing.T) {
	h := open(t)
	dora, ann := h.user("dora", people.Operator), h.user("ann", people.Approver)
	b := h.signIn(dora)
	if a := b.get("/chat"); !strings.Contains(a.body, "No messages yet") || !strings.Contains(a.body, ">Send<") {
		t.Errorf("the empty chat: %d", a.StatusCode)
	}
	a := b.post("/chat", url.Values{"text": {"<script>alert(1)</script>\u202e"}, "agent": {"kik"}, "key": {"once"}})
	if a.StatusCode != http.StatusOK || a.Request.URL.Path != "/chat" || !strings.Contains(a.body, "&lt;script&gt;") || strings.Contains(a.body, "\u202e") {
		t.Errorf("after sending: %d %s", a.StatusCode, a.Request.URL)
	}
	if page, err := h.store.List(h.ctx, orchestrator.Filter{RootsOnly: true}); err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	} else if task, err := h.store.Task(h.ctx, page.Items[0].TaskID); err != nil || task.Via != origin.From(origin.Chat) || task.Chat != dora.ID { // P15
		t.Errorf("its task came by %q of %q: %v", task.Via, task.Chat, err)
	}
	if a := b.post("/chat", url.Values{"text": {"Keep me"}, "agent": {"nobody"}}); a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "Keep me") {
		t.Errorf("a refused message: %d, or its text is gone", a.StatusCode)
	}
	r := h.request(dora)
	v := h.signIn(ann)
	page := v.get("/chat")
	for _, want := range []string{"Other requests", "Fix the retry loop", ">Approve<", ">Reject<", ">Request changes<"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("an approver's chat lacks %s", want)
		}
	}
	if strings.Contains(page.body, `name="text"`) {
		t.Error("an approver can send messages")
	}
	if a := v.post("/chat/approvals/"+r.ID+"/decision", url.Values{"verdict": {"approve"}, "digest": {"00" + digest[2:]}, "comment": {"typed"}}); a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "typed") {
		t.Errorf("a verdict on another digest: %d, or the comment is gone", a.StatusCode)
	}
	done := v.post("/chat/approvals/"+r.ID+"/decision", url.Values{"verdict": {"approve"}, "digest": {digest}})
	if done.StatusCode != http.StatusOK || !strings.Contains(done.body, "ann approved in chat") {
		t.Errorf("after the yes: %d", done.StatusCode)
	}
	stored, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if stored.State != approval.Approved || stored.Decisions[0].Channel != "chat" || stored.Decisions[0].Seen.Surface != "chat" {
		t.Errorf("stored: %s %+v", stored.State, stored.Decisions)
	}
	if late := v.post("/chat/approvals/"+r.ID+"/decision", url.Values{"verdict": {"reject"}, "digest": {digest}}); late.StatusCode != http.StatusConflict || !strings.Contains(late.body, "ann approved this") {
		t.Errorf("a late verdict: %d", late.StatusCode)
	}
}

// The card offers a yes only where it can show all of it, and the server holds to that.
func TestACarefulChangeIsNotApprovedInTheChat(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	careful := h.request(dora, func(r *approval.Request) {
		r.Revision.Warnings = []patch.Warning{{Code: "ci_file", Path: "ci.yml", Text: "x"}}
	})
	elsewhere := h.request(dora, func(r *approval.Request) { r.Mode = "telegram" })
	v := h.signIn(h.user("ann", people.Approver))
	page := v.get("/chat?request=" + careful.ID).body
	if strings.Contains(page, ">Approve<") || !strings.Contains(page, "To approve, open the diff: CI file changed.") || !strings.Contains(page, ">Reject<") {
		t.Error("the card of a careful change")
	}
	if page := v.get("/chat").body; strings.Contains(page, "card-"+elsewhere.ID) {
		t.Error("a request that is asked on Telegram has a card in the chat")
	}
	for _, r := range []approval.Request{careful, elsewhere} {
		if a := v.post("/chat/approvals/"+r.ID+"/decision", url.Values{"verdict": {"approve"}, "digest": {digest}}); a.StatusCode != http.StatusForbidden {
			t.Errorf("approved in the chat: %d", a.StatusCode)
		}
		if a := v.post("/chat/approvals/"+r.ID+"/decision", url.Values{"verdict": {"reject"}, "digest": {digest}}); a.StatusCode != http.StatusOK {
			t.Errorf("every channel can reject: %d", a.StatusCode)
		}
	}
}
