package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// The box that enables hand-overs is there where a task has to say so, and nowhere else. It
// stays ticked when the form comes back with an error.
func TestTheBoxForHandovers(t *testing.T) {
	h := open(t)
	b := h.signIn(h.user("dora", people.Operator))
	const box = `name="handoffs"`
	for _, path := range []string{"/", "/chat", "/delegations", "/agents/kik"} {
		if a := b.get(path); a.StatusCode != http.StatusOK || strings.Contains(a.body, box) {
			t.Errorf("%s has the box while hand-overs are on: %d", path, a.StatusCode)
		}
	}
	c := *h.engine.Config()
	c.Settings.OptIn = true
	h.engine.SetConfig(c)
	for _, path := range []string{"/", "/chat", "/delegations", "/agents/kik"} {
		if a := b.get(path); strings.Count(a.body, box) != 1 || strings.Contains(a.body, box+` value="1" checked`) {
			t.Errorf("%s has %d boxes", path, strings.Count(a.body, box))
		}
	}
	for _, path := range []string{"/delegations", "/chat"} {
		a := b.post(path, url.Values{"agent": {"kik"}, "text": {" "}, "handoffs": {"1"}})
		if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, box+` value="1" checked`) {
			t.Errorf("%s: an error unticks the box, %d", path, a.StatusCode)
		}
	}
	for _, enable := range []bool{true, false} {
		for _, path := range []string{"/delegations", "/chat"} {
			form := url.Values{"agent": {"kik"}, "text": {"Do it " + path}}
			if enable {
				form.Set("handoffs", "1")
			}
			b.post(path, form)
			page, err := h.store.List(h.ctx, orchestrator.Filter{RootsOnly: true, Limit: 1})
			h.must(err)
			if len(page.Items) != 1 || page.Items[0].Work.Independent == enable {
				t.Errorf("%s with the box %v made %+v", path, enable, page.Items)
			}
		}
	}
}
