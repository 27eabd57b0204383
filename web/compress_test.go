package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"gatehouse/orchestrator/people"
)

// A page is compressed for those who take it, and is the same page; what is no page, or
// small, or streamed, is as it was.
func TestLargePagesAreSentCompressed(t *testing.T) {
	h := open(t)
	zoe := h.user("zoe", people.Admin, people.Operator, people.Auditor)
	task, _ := h.task(zoe, "Fix")
	b := h.signIn(zoe)
	get := func(path, accept string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(h.ctx, http.MethodGet, h.url+path, nil)
		h.must(err)
		req.Header.Set("Accept-Encoding", accept)
		res, err := b.client.Do(req)
		h.must(err)
		t.Cleanup(func() { res.Body.Close() }) //nolint:errcheck // it was read
		return res
	}
	res := get("/delegations", "br, gzip")
	if res.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(res.Header.Get("Vary"), "Accept-Encoding") {
		t.Fatalf("a page came with %v", res.Header)
	}
	z, err := gzip.NewReader(res.Body)
	h.must(err)
	page, err := io.ReadAll(z)
	h.must(err)
	if !strings.HasSuffix(strings.TrimSpace(string(page)), "</html>") || !strings.Contains(string(page), task.ID) {
		t.Errorf("not the whole page: %d bytes", len(page))
	}
	for path, accept := range map[string]string{
		"/delegations": "identity", v1 + "/delegations": "gzip", "/healthz": "gzip",
	} {
		if got := get(path, accept).Header.Get("Content-Encoding"); got != "" {
			t.Errorf("%s for %s came as %s", path, accept, got)
		}
	}
}
