package web_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// largestPage is how many bytes any page may have, whatever others wrote.
const largestPage = 2 << 20

// forProgram is what a page has for the form that sends it back and for its own script, as it was written: no reader
// sees the first and the third, and the second is the field in which a person changes the text.
var forProgram = regexp.MustCompile(`(?s) data-path="[^"]*"|<textarea[^>]*>.*?</textarea>|<input type="hidden"[^>]*>`)

// stop is one page on the way through the house.
type stop struct {
	name, path string
	status     int  // 0: 200
	sees       bool // hostile text stands on it
	alike      bool // the same parts as another stop, so a desk is enough
}

// empty are the pages as a new house has them.
func empty() []stop {
	return []stop{
		{name: "overview", path: "/"}, {name: "approvals", alike: true, path: "/approvals"}, {name: "delegations", alike: true, path: "/delegations"},
		{name: "chat", path: "/chat"}, {name: "context", path: "/context"}, {name: "insights", path: "/insights"}, {name: "waits", alike: true, path: "/waits"},
		{name: "triggers", path: "/triggers"}, {name: "audit", path: "/audit"}, {name: "holds", alike: true, path: "/audit/holds"}, {name: "verify", alike: true, path: "/audit/verify"},
		{name: "tokens", alike: true, path: "/settings/tokens"},
	}
}

// pages are all of a house in use.
func (w *world) pages() []stop {
	task, request := "/delegations/"+w.task.ID, "/approvals/"+w.pending.ID
	chatted := "/delegations/" + w.chatted.ID
	return []stop{
		{name: "overview", path: "/", sees: true},
		{name: "approvals", path: "/approvals", sees: true}, {name: "approvals-all", alike: true, path: "/approvals?state=all", sees: true},
		{name: "review", path: request, sees: true}, {name: "review-split", alike: true, path: request + "?view=split", sees: true},
		{name: "review-comment", path: request + "?comment=F1R1", sees: true}, {name: "review-search", alike: true, path: request + "?find=pwned"},
		{name: "review-rejected", path: "/approvals/" + w.decided.ID, sees: true}, {name: "review-approved", alike: true, path: "/approvals/" + w.handled.ID, sees: true},
		{name: "review-threads", path: "/approvals/" + w.talked.ID, sees: true}, {name: "evidence-threads", alike: true, path: "/approvals/" + w.talked.ID + "/evidence", sees: true},
		{name: "evidence", path: "/approvals/" + w.decided.ID + "/evidence", sees: true},
		{name: "delegations", path: "/delegations", sees: true}, {name: "delegations-nothing", alike: true, path: "/delegations?filter=" + url.QueryEscape(`"`+shownHostile+`nowhere"`)},
		{name: "stop-all", path: "/delegations/stop"},
		{name: "task-tree", path: task + "?tab=tree"}, {name: "task-timeline", alike: true, path: task + "?tab=timeline"}, {name: "task-gaps", alike: true, path: task + "?tab=timeline&pinch=off"}, {name: "task-events", path: task + "?tab=events"},
		{name: "task-result", alike: true, path: task + "?tab=result"}, {name: "task-context", path: task + "?tab=context"}, {name: "task-flow", path: task + "?tab=flow"}, {name: "task-figures", path: task + "?tab=figures"},
		{name: "chatted", path: chatted, sees: true}, {name: "chatted-conversation", path: chatted + "?tab=conversation", sees: true},
		{name: "chatted-events", alike: true, path: chatted + "?tab=events", sees: true}, {name: "chatted-result", alike: true, path: chatted + "?tab=result", sees: true}, {name: "chatted-plain", alike: true, path: chatted + "?tab=result&plain=1", sees: true},
		{name: "chat", path: "/chat", sees: true},
		{name: "agents", path: "/agents"}, {name: "agents-check", alike: true, path: "/agents?from=kik&to=" + url.QueryEscape(hostile)}, {name: "agent", path: "/agents/coder"},
		{name: "context", path: "/context"}, {name: "context-notes", path: "/context?ns=notes", sees: true}, {name: "context-value", alike: true, path: "/context?ns=notes&key=" + url.QueryEscape(`a'b"<i>=1`), sees: true},
		{name: "insights", path: "/insights"}, {name: "waits", path: "/waits", sees: true},
		{name: "triggers", path: "/triggers"}, {name: "trigger", path: "/triggers/ci-failed", sees: true}, {name: "trigger-wrong", path: "/triggers/ci-failed?state=refused,failed", sees: true}, {name: "schedule", alike: true, path: "/triggers/nightly"},
		{name: "delivery", path: "/triggers/ci-failed/deliveries/" + w.delivery.ID, sees: true},
		{name: "audit", path: "/audit", sees: true}, {name: "audit-delegations", alike: true, path: "/audit?list=delegations", sees: true}, {name: "audit-events", path: "/audit?list=events", sees: true},
		{name: "audit-nothing", alike: true, path: "/audit?filter=approver:bob"}, {name: "audit-export", path: "/audit/export?list=requests&filter=time:30d"},
		{name: "audit-verify", alike: true, path: "/audit/verify"}, {name: "holds", path: "/audit/holds", sees: true},
		{name: "audit-mistake", path: "/audit?filter=" + url.QueryEscape("aprover:"+shownHostile), status: http.StatusBadRequest, sees: true},
		{name: "you", path: "/settings/you"}, {name: "people", path: "/settings/people"}, {name: "person", path: "/settings/people/ann"},
		{name: "tokens", path: "/settings/tokens"}, {name: "channels", path: "/settings/channels"}, {name: "config", path: "/settings/config"}, {name: "policy", path: "/settings/policy"},
		{name: "not-found", path: "/nowhere", status: http.StatusNotFound}, {name: "task-not-found", alike: true, path: "/delegations/tsk_00000000000000000000000000", status: http.StatusNotFound},
	}
}

// Every page, empty and in use, on a desk in the light and on a phone in the dark, keeps the rules of WCAG 2.2 AA as
// far as a program can tell, is no wider than its screen, and runs nothing that others wrote.
func TestEveryPageInTheBrowser(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor)
	browser := browsertest.New(t)
	p := h.seat(browser, ann)
	h.walk(p, "empty", empty())
	h.walk(p, "page", h.furnish(ann).pages())
	h.walk(browser.Page(), "outside", []stop{{name: "login", path: "/login"}, {name: "link", path: "/login/link?code=none", status: http.StatusUnauthorized}})
}

// walk looks at every stop on a desk in the light, and at those that differ on a phone in the dark.
func (h *house) walk(p *browsertest.Page, tour string, stops []stop) {
	h.Helper()
	for _, phone := range []bool{false, true} {
		look := "wide"
		p.Desktop().Light()
		if phone {
			look = "phone-dark"
			p.Phone().Dark()
		}
		for _, s := range stops {
			if !phone || !s.alike {
				h.look(p, s, tour+"-"+s.name+"-"+look)
			}
		}
	}
}

// look opens one page and holds it to the rules.
func (h *house) look(p *browsertest.Page, s stop, name string) {
	h.Helper()
	if s.status != 0 {
		p.Expect(s.path)
	}
	p.Open(h.url + s.path)
	for _, v := range p.Violations() {
		h.Errorf("%s: %s", name, v)
	}
	if browsertest.Eval[bool](p, `window.__pwned !== undefined`) {
		h.Errorf("%s: a script of others ran", name)
	}
	// A phone widens its window to what does not fit; what it is laid out in stays as it is.
	if wide := browsertest.Eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		h.Errorf("%s is %d px wider than the screen", name, wide)
	}
	if os.Getenv("GATEHOUSE_SHOTS") != "" { // a picture of a whole page takes longer than the rules
		p.Shot(name)
	}
}

// What others wrote is text on every page, of a size that a browser bears; whatever is hidden in it is made visible.
func TestHostileTextsStayText(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor)
	w := h.furnish(ann)
	b := h.signIn(ann)
	for _, s := range w.pages() {
		a := b.get(s.path)
		if want := max(s.status, http.StatusOK); a.StatusCode != want {
			t.Errorf("%s: %d, want %d", s.name, a.StatusCode, want)
		}
		if len(a.body) > largestPage {
			t.Errorf("%s has %d bytes", s.name, len(a.body))
		}
		text := forProgram.ReplaceAllString(a.body, "")
		for _, harm := range []string{"<script>window", "<img src=x", "\u202e", "\u2066", "\u200b", "\x1b", "\x07", `="javascript:`, "<b>=1", "<i>=1"} {
			if at := strings.Index(text, harm); at >= 0 {
				t.Errorf("%s has %q: …%q", s.name, harm, text[max(0, at-120):min(len(text), at+20)])
			}
		}
		if s.sees && !strings.Contains(a.body, "window.__pwned=1") {
			t.Errorf("%s hides what others wrote", s.name)
		}
	}
}
