package web_test

import (
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// focused is what a screen reader would say of the element that has the focus, near enough.
const focused = `(() => { const e = document.activeElement; return (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || "").trim().replace(/\s+/g, " "); })()`

// tabTo presses Tab until the focus is on something of that name.
func tabTo(t *testing.T, p *browsertest.Page, name string) {
	t.Helper()
	const most = 150
	var way []string
	for range most {
		p.Press("Tab")
		at := browsertest.Eval[string](p, focused)
		if strings.HasPrefix(at, name) {
			if !browsertest.Eval[bool](p, `(() => { const e = document.activeElement, r = e.getBoundingClientRect(); return e.matches(":focus-visible") && r.width > 0 && r.bottom > 0 && r.top < innerHeight; })()`) {
				t.Errorf("%q has the focus and nobody sees it", name)
			}
			return
		}
		way = append(way, at)
	}
	t.Fatalf("Tab does not come to %q, only to %.60q", name, way)
}

// The keyboard alone does the whole review: from the overview to the request, to a line, a comment, the next file, and
// a request for changes; a change with warnings is approved with a tick for each kind.
func TestTheKeyboardAloneReviews(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	first := h.request(dora, withCI)
	p := h.seat(browsertest.New(t), bob)

	p.Open(h.url + "/")
	p.Press("Tab")
	if at := browsertest.Eval[string](p, focused); at != "Skip to content" {
		t.Errorf("the first stop is %q", at)
	}
	p.Press("Enter")
	tabTo(t, p, "Fix the retry loop")
	p.Press("Enter")
	p.Wait("button", "Approve")
	p.Press("]")
	p.Press("j")
	p.Press("c")
	p.Wait("button", "Save comment")
	p.Press("Give up sooner.")
	tabTo(t, p, "Save comment")
	p.Press("Enter")
	p.WaitText("not sent")
	p.WaitText("1 comment")
	tabTo(t, p, "Request changes")
	p.Press("Enter")
	p.WaitText("The agent runs again with your comments.")
	got, err := h.store.Request(h.ctx, first.ID)
	h.must(err)
	if len(got.Decisions) != 1 || got.Decisions[0].Verdict != approval.RequestChanges || len(got.Decisions[0].Comments) != 1 || !strings.Contains(got.Decisions[0].Comments[0].Text, "Give up sooner.") {
		t.Errorf("decided: %+v", got.Decisions)
	}
}

// withCI makes a request change what CI runs, too.
func withCI(r *approval.Request) {
	r.Revision.Files = append(r.Revision.Files, patch.File{Path: ".github/ci.yml", Status: patch.Modified, Added: 1, Removed: 1, OldMode: "100644", NewMode: "100644"})
}

// So does a change that is warned of: each warning is ticked, then it is approved.
func TestTheKeyboardAloneApprovesWithCare(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	p := h.seat(browsertest.New(t), bob)
	careful := h.request(dora, withCI, func(r *approval.Request) {
		r.Revision.Warnings = []patch.Warning{{Code: "ci_file", Path: ".github/ci.yml", Text: "It changes what CI runs."}, {Code: "bidi", Path: "retry.go", Text: "It has U+202E."}}
	})
	p.Open(h.url + "/approvals/" + careful.ID)
	p.Wait("button", "Approve")
	p.Until("!document.querySelector('[data-unviewed]')") // a file has been in sight to its end for a while
	p.Press("a")
	opened := browsertest.Eval[float64](p, `performance.now()`)
	for _, tick := range []string{"CI file changed", "Text direction"} {
		p.WaitText("I have looked at: " + tick)
		if at := browsertest.Eval[string](p, focused); !strings.Contains(at, tick) {
			tabTo(t, p, "I have looked at: "+tick)
		}
		p.Press("Space")
	}
	tabTo(t, p, "Approve")
	const doubleTap = 300 // milliseconds in which the page takes a second press for a double tap; no person is that quick
	for browsertest.Eval[float64](p, `performance.now()`) < opened+2*doubleTap {
	}
	p.Press("Enter")
	p.WaitText("Your approval was counted.")
	got, err := h.store.Request(h.ctx, careful.ID)
	h.must(err)
	if len(got.Decisions) != 1 || got.Decisions[0].Verdict != approval.Approve || len(got.Decisions[0].Seen.WarningsTicked) != 2 {
		t.Errorf("decided: %+v", got.Decisions)
	}
}

// A session that ends while somebody writes costs a sign-in and not the words.
func TestWordsOutliveTheSession(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	r := h.request(dora)
	p := h.seat(browsertest.New(t), bob)
	p.Expect("401")
	address := h.url + "/approvals/" + r.ID
	p.Open(address)
	p.Fill("Comment", "Breaks resume.")
	_, err := h.store.EndSessions(h.ctx, "test", bob.ID, "")
	h.must(err)
	p.Click("button", "Reject")
	p.Wait("button", "Sign in")
	if !strings.Contains(p.URL(), r.ID) {
		t.Errorf("signing in would lead away from the request: %s", p.URL())
	}
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if len(got.Decisions) != 0 {
		t.Errorf("nobody decided: %+v", got.Decisions)
	}
	h.enter(p, bob)
	p.Open(address)
	p.Wait("button", "Reject")
	if text := browsertest.Eval[string](p, `document.getElementById("comment").value`); text != "Breaks resume." {
		t.Errorf("of the comment remains %q", text)
	}
	p.Click("button", "Reject")
	p.WaitText("Breaks resume.")
	got, err = h.store.Request(h.ctx, r.ID)
	h.must(err)
	if len(got.Decisions) != 1 || got.Decisions[0].Verdict != approval.Reject || got.Decisions[0].Comment != "Breaks resume." {
		t.Errorf("decided: %+v", got.Decisions)
	}
}
