package web_test

import (
	"net/http"
	"testing"
	"time"

	"gatehouse/orchestrator/people"
)

// TestStreamsLeaveRoomForOthers: only so many streams are open at once. One more is told
// when to come again, pages and the API still answer, and a place that is left is taken.
func TestStreamsLeaveRoomForOthers(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	if h.web.Streams.Most < 1 {
		t.Fatal("without a setting there is no limit")
	}
	h.web.Streams.Most = 2
	first, _, err := h.socket(token, nil)
	h.must(err)
	second, _, err := h.socket(token, nil)
	h.must(err)
	defer second.Close()
	if _, res, err := h.socket(token, nil); err == nil || res == nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a third WebSocket: %v, %v", res, err)
	}
	a := h.expect(http.StatusServiceUnavailable, "unavailable", http.MethodGet, "/api/v1/events", token, "", func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") })
	if a.Header.Get("Retry-After") == "" {
		t.Error("an event stream is not told when to come again")
	}
	if page := h.signIn(dora).get("/delegations"); page.StatusCode != http.StatusOK {
		t.Errorf("a page: %d", page.StatusCode)
	}
	h.must(first.Close())
	for end := h.soon(); ; time.Sleep(time.Millisecond) {
		again, _, err := h.socket(token, nil)
		if err == nil {
			h.must(again.Close())
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the place that was left: %v", err)
		}
	}
}
