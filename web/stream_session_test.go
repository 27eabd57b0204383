package web_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"

	"github.com/gorilla/websocket"
)

// listen opens the stream that a page of this browser names, with a changed address.
func (b *browser) listen(change func(string) string) *http.Response {
	b.Helper()
	m := regexp.MustCompile(`data-stream="([^"]+)"`).FindStringSubmatch(b.get("/").body)
	if m == nil {
		b.Fatal("the page names no stream")
	}
	address := strings.ReplaceAll(m[1], "&amp;", "&")
	req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, b.url+change(address), nil)
	b.must(err)
	req.Header.Set("Accept", "text/event-stream")
	res, err := b.client.Do(req)
	b.must(err)
	b.Cleanup(func() { res.Body.Close() }) //nolint:errcheck // it was read
	return res
}

func asIs(address string) string { return address }

// A page's stream ends as soon as its session does, whoever ends it, and another person who
// signs in in the same browser does not go on with it.
func TestAStreamEndsWithItsSession(t *testing.T) {
	h := open(t)
	eve, ivy := h.user("eve", people.Operator), h.user("ivy", people.Operator)
	b := h.signIn(eve)
	before := ""
	res := b.listen(func(address string) string { before = address; return address })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the stream of a page: %d", res.StatusCode)
	}
	elsewhere := h.signIn(eve).listen(asIs)
	b.post("/logout", url.Values{})
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), "system") {
			t.Errorf("an operator hears %s", lines.Text())
		}
	} // ends: the test's own limit is the proof
	if elsewhere.StatusCode != http.StatusOK || h.web.Streams.Open() != 1 {
		t.Errorf("%d streams are open; eve is still signed in in another browser", h.web.Streams.Open())
	}
	stranger := h.signIn(ivy)
	if status := stranger.listen(func(string) string { return before }).StatusCode; status != http.StatusUnauthorized {
		t.Errorf("ivy's browser goes on with the stream of eve's page: %d", status)
	}
	if name := stranger.get("/").Header.Get("Gatehouse-Session"); name == "" || strings.Contains(before, name) {
		t.Errorf("the sessions of two people are called %q alike", name)
	}
}

// Whatever a connection reads, it ends at once when its session or token does. The next look
// at all of them, a minute later, would be behind the limit of these reads.
func TestEveryConnectionEndsWithItsSessionOrToken(t *testing.T) {
	address := storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "house.db"))
	h := openAt(t, address)
	cli, err := sqlstore.Open(h.ctx, address, store.Options{Logger: slog.New(slog.DiscardHandler)}) // as another process does
	h.must(err)
	t.Cleanup(func() { h.must(cli.Close()) })
	eve := h.user("eve", people.Operator)
	task, _ := h.task(eve, "Fix")
	b := h.signIn(eve)
	token, revoked, revokedToo := h.token(eve), h.token(eve), h.token(eve)
	ends := func(what string, c *websocket.Conn, res *http.Response) {
		if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
			t.Errorf("the WebSocket of %s: %v", what, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Errorf("the stream of one task of %s: %v", what, err)
		}
	}
	at, err := url.Parse(h.url)
	h.must(err)
	header := http.Header{"Origin": {h.url}}
	for _, cookie := range b.client.Jar.Cookies(at) {
		header.Add("Cookie", cookie.String())
	}
	mine, mineToo := h.subscribed(task, "", header), h.listens(task, b.client, "")
	bots, botsToo := h.subscribed(task, revoked, nil), h.listens(task, http.DefaultClient, revoked)
	others, othersToo := h.subscribed(task, revokedToo, nil), h.listens(task, http.DefaultClient, revokedToo)
	stays, staysToo := h.subscribed(task, token, nil), h.listens(task, http.DefaultClient, token)

	b.post("/logout", url.Values{})
	ends("the session", mine, mineToo)
	revoke := func(by *sqlstore.Store, secret string) {
		tokens, err := h.store.Tokens(h.ctx, eve.ID)
		h.must(err)
		sum := signin.HashSecret(secret)
		for _, x := range tokens {
			if x.Hash == sum {
				h.must(by.RevokeToken(h.ctx, "root", x.ID))
			}
		}
	}
	revoke(h.store, revoked)
	ends("the revoked token", bots, botsToo)
	revoke(cli, revokedToo)
	ends("the token revoked on the command line", others, othersToo)

	h.must(stays.WriteJSON(map[string]any{"type": "dance"}))
	for kind := ""; kind != "error"; {
		var m struct{ Type string }
		h.must(stays.ReadJSON(&m))
		kind = m.Type
	}
	if n := h.web.Streams.Open(); n != 2 {
		t.Errorf("%d connections are open, want the two of the other token", n)
	}
	h.must(staysToo.Body.Close())
}

// subscribed is a WebSocket on which the events of a task come.
func (h *house) subscribed(task orchestrator.Task, token string, header http.Header) *websocket.Conn {
	h.Helper()
	c, _, err := h.socket(token, header)
	h.must(err)
	h.Cleanup(func() { c.Close() }) //nolint:errcheck // it has ended
	h.must(c.SetReadDeadline(time.Now().Add(30 * time.Second)))
	h.must(c.WriteJSON(map[string]any{"type": "subscribe", "task_id": task.ID, "after": 1}))
	var e event.Event
	h.must(c.ReadJSON(&e)) // it is under way
	return c
}

// listens is a stream of the events of a task; no token is "" where the client has a session.
func (h *house) listens(task orchestrator.Task, client *http.Client, token string) *http.Response {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, 30*time.Second)
	h.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/delegation-stream?id="+task.ID, nil)
	h.must(err)
	req.Header.Set("Accept", "text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	h.must(err)
	h.Cleanup(func() { res.Body.Close() }) //nolint:errcheck // it was read
	return res
}

// Cursors that nobody gave are refused, or answered with a gap; never with somebody's events.
func TestForgedCursorsOfStreams(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, _ := h.task(dora, "Fix")
	for _, path := range []string{v1 + "/events", v1 + "/delegations/" + task.ID + "/events", "/delegation-stream?id=" + task.ID} {
		for _, forged := range []string{"-1", "x", "1e3", "0x10", "9223372036854775808", "1; drop table events", "１", strings.Repeat("9", 5000)} {
			h.expect(http.StatusBadRequest, "bad_request", "GET", path, token, "", func(r *http.Request) {
				r.Header.Set("Accept", "text/event-stream")
				r.Header.Set("Last-Event-ID", forged)
			})
		}
	}
}
