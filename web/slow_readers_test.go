package web_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store/storetest"
)

// slowServer serves h's database to readers who take little, for a short time, and counts
// the connections that it has closed. They hold as little as possible on the way.
func slowServer(h *house, patience time.Duration) (*httptest.Server, *atomic.Int64) {
	h.Helper()
	others := h.web
	own := httptest.NewUnstartedServer(h.server("127.0.0.1:8080", ""))
	slow := h.web
	h.web = others
	slow.Patience, slow.API.Patience = patience, patience
	own.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		h.must(c.(*net.TCPConn).SetWriteBuffer(4 << 10))
		return ctx
	}
	closed := new(atomic.Int64)
	own.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed.Add(1)
		}
	}
	own.Start()
	h.Cleanup(func() { slow.Streams.Close(); own.CloseClientConnections(); own.Close() })
	return own, closed
}

// slowReaders open these addresses, and take the first bytes of the answers only.
func slowReaders(h *house, server *httptest.Server, token string, paths ...string) (all []net.Conn) {
	h.Helper()
	for _, path := range paths {
		c, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		h.must(err)
		h.Cleanup(func() { c.Close() }) //nolint:errcheck // the test is over
		h.must(c.(*net.TCPConn).SetReadBuffer(4 << 10))
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", path, token)
		h.must(err)
		all = append(all, c)
	}
	return all
}

// Readers who open long exports and large pages, and then take next to nothing of them, hold
// up nobody: more of them than the database has connections leave all of it to others. After
// a while they are cut off.
func TestSlowReadersHoldUpNobodyAndAreCutOff(t *testing.T) {
	address := storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "house.db"))
	storetest.Seed(t, address, 2000, time.Now())
	h := openAt(t, address)
	token := h.token(h.user("ann", people.Admin, people.Auditor, people.Operator))
	r := h.request(h.user("dora", people.Operator), func(r *approval.Request) { r.Revision.Text = strings.Repeat("I fixed it. ", 20_000) })
	paths := []string{v1 + "/audit/export", v1 + "/audit/export?list=events", v1 + "/delegations?limit=200", "/approvals/" + r.ID}
	for _, path := range paths {
		a := h.expect(http.StatusOK, "", "GET", path, token, "", func(r *http.Request) { r.Header.Set("Accept-Encoding", "identity") })
		if len(a.body) < 100<<10 {
			t.Errorf("%s has %d bytes only: the way there may hold as much", path, len(a.body))
		}
	}

	patient, _ := slowServer(h, time.Hour)
	head := make([]byte, 12)
	for _, c := range slowReaders(h, patient, token, slices.Repeat(paths, 12)...) {
		h.must(c.SetReadDeadline(h.soon()))
		if _, err := io.ReadFull(c, head); err != nil || !bytes.Equal(head, []byte("HTTP/1.1 200")) {
			t.Fatalf("an answer begins with %q, %v", head, err)
		}
	}
	for _, path := range append(paths, "/", "/delegations") {
		h.expect(http.StatusOK, "", "GET", path, token, "")
	}
	h.expect(http.StatusAccepted, "", "POST", v1+"/tasks", token, `{"agent": "coder", "repository": "app", "text": "Fix it"}`)

	// They take nothing more and the way holds little, so none of them has all of its answer.
	strict, closed := slowServer(h, time.Second/2)
	readers := slowReaders(h, strict, token, paths...)
	for deadline := h.soon(); closed.Load() < int64(len(readers)); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d connections are cut", closed.Load(), len(readers))
		}
	}
}
