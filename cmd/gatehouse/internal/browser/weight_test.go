package browser

import (
	"fmt"
	"path/filepath"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// Limits of a page at a first visit, with an empty cache. Paint is noted and not limited: it
// depends on the machine.
const (
	maxTransfer = 200_000 // bytes on the wire, all files together
	maxShift    = 0.1     // of the window, as Web Vitals' "good"
)

// weight is what the browser itself measured of a page.
type weight struct {
	Requests int     `json:"requests"`
	Bytes    int     `json:"bytes"`
	HTML     int     `json:"html"`
	Paint    float64 `json:"paint"` // ms
	Shift    float64 `json:"shift"`
}

// weigh reads the browser's performance entries. The size of an answer is that of its body as
// sent; 300 bytes stand for its head, as in the browser's own transferSize.
const weigh = `(() => {
	const all = performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")).filter(e => !e.name.includes("/events"))
	const paint = performance.getEntriesByName("first-contentful-paint")[0]
	return {requests: all.length, bytes: all.reduce((n, e) => n + e.encodedBodySize + 300, 0), html: all[0].encodedBodySize,
		paint: paint ? paint.startTime : -1, shift: window.shifted}
})()`

// noteShift adds up what moved since the page began, without what followed a key or press.
const noteShift = `(() => {
	window.shifted = 0
	new PerformanceObserver(list => list.getEntries().forEach(e => { if (!e.hadRecentInput) window.shifted += e.value })).observe({type: "layout-shift", buffered: true})
	return true
})()`

// TestPagesAreLight: each page at a first visit stays under 200 kB on the wire, and nothing on
// it jumps while it loads.
func TestPagesAreLight(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), statesTeam)
	n := p.Start(p.Config, "")
	request := n.Asked(n.Send("kik", "", "the build over again"))
	for i := range 30 {
		n.Send("talker", "", fmt.Sprintf("chore %d", i))
	}
	page := browsertest.New(t).Page()
	enter(p, page, n.URL, "zoe", people.Admin, people.Operator, people.Approver, people.Auditor)
	task := "/delegations/" + request.TaskID
	for _, path := range []string{"/", "/approvals", "/approvals/" + request.ID, "/approvals/" + request.ID + "/evidence", "/delegations", task, task + "?tab=timeline", task + "?tab=events",
		"/chat", "/agents", "/agents/coder", "/context", "/insights", "/triggers", "/audit", "/audit?filter=&live=1", "/settings", "/settings/people", "/settings/policy"} {
		page.Forget()
		page.Open(n.URL + path)
		page.Wait("navigation", "Main")
		browsertest.Eval[bool](page, noteShift)
		page.Until(`document.readyState === "complete" && performance.getEntriesByName("first-contentful-paint").length > 0`)
		w := browsertest.Eval[weight](page, weigh)
		t.Logf("%-46s %6d bytes (page %6d) in %2d requests, first paint %4.0f ms, shift %.3f", path[:min(len(path), 46)], w.Bytes, w.HTML, w.Requests, w.Paint, w.Shift)
		if w.Bytes >= maxTransfer {
			t.Errorf("%s takes %d bytes at a first visit", path, w.Bytes)
		}
		if w.Shift > maxShift {
			t.Errorf("%s: %.3f of the window moved while it loaded", path, w.Shift)
		}
	}
}
