package web_test

import (
	"bufio"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"gatehouse/orchestrator/people"
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
