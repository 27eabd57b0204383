package web_test

import (
	"testing"

	"gatehouse/web/browsertest"
)

// What an auditor prints has the rows and the proof, and nothing to press.
func TestTheAuditorsPagesArePrinted(t *testing.T) {
	h := open(t)
	dora, ann, bob, form := h.team()
	h.decided(dora, ann, "approve")
	h.decided(dora, bob, "reject")
	form.post("/audit/verify", nil)
	iris, err := h.store.UserByName(h.ctx, "iris")
	h.must(err)
	page := h.seat(browsertest.New(t), iris)
	for name, path := range map[string]string{"audit": "/audit", "verify": "/audit/verify", "events": "/audit?list=events&filter="} {
		page.Open(h.url + path)
		page.Paper().Shot("print-" + name)
		if n := browsertest.Eval[int](page, `[...document.querySelectorAll('button, select, input:placeholder-shown')].filter(e => e.offsetParent).length`); n > 0 {
			t.Errorf("%s is printed with %d things to press", name, n)
		}
	}
}
