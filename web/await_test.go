package web_test

import (
	"time"
)

// awaitOrder waits until that many events have their place in the order over all tasks.
func (h *house) awaitOrder(n int64) {
	h.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		grown := h.store.Grown().Changed()
		pos, err := h.store.LastPosition(h.ctx)
		h.must(err)
		if pos >= n {
			return
		}
		select {
		case <-grown:
		case <-time.After(time.Until(end)):
			h.Fatalf("%d events are in order, want %d", pos, n)
		}
	}
}

// soon is when a link of a test runs out.
func (h *house) soon() time.Time { return time.Now().Add(time.Minute) }
