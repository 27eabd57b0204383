package web_test

import (
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/trigger"
	"gatehouse/web/browsertest"
)

// scriptOnly lists what can be seen and does nothing without a script: buttons that send no
// form, links that lead nowhere, forms that nothing sends (Enter sends one with one field).
// An id is read as it stands, and whole when the mouse rests on it; only its copying needs a script.
const scriptOnly = `[...document.querySelectorAll("button, a, form")].filter(e => e.checkVisibility() && (
	e.matches("button") ? (e.type !== "submit" || !e.form) && !e.matches(".id") : e.matches("a") ? !e.hasAttribute("href") || e.getAttribute("href") === "#" : !e.querySelector("[type=submit]") && e.querySelectorAll("input:not([type=hidden])").length !== 1)
	).map(e => e.outerHTML.slice(0, 160)).join("\n")`

// plain opens a page and holds it to it that all of it works without a script.
func (h *house) plain(p *browsertest.Page, path, want string) {
	h.Helper()
	p.Open(h.url + path)
	p.WaitText(want)
	if dead := browsertest.Eval[string](p, scriptOnly); dead != "" {
		h.Errorf("%s has what only works with a script:\n%s", path, dead)
	}
}

// scriptless signs somebody in and takes the scripts away.
func (h *house) scriptless(u people.User) *browsertest.Page {
	h.Helper()
	p := h.seat(browsertest.New(h.T), u)
	p.Open("about:blank") // no script of a page is under way
	return p.Script(false)
}

// Without JavaScript an auditor filters, saves, exports and verifies, and an operator tries
// a trigger and delivers again.
func TestAnAuditorAndAnOperatorWithoutScript(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor)
	h.user("dora", people.Operator)
	asked := h.request(ann)
	h.triggers()
	d := h.delivered(trigger.Refused, `{"a":1,"a":2}`, func(d *trigger.Delivery) { d.Code, d.Message = "duplicate_key", "The key stands twice." })
	p := h.scriptless(ann)

	h.plain(p, "/audit", "time:30d")
	p.Fill("Filter", "requester:nobody")
	p.Click("button", "Filter")
	p.WaitText("No request matches")
	p.Click("link", "Clear")
	p.Click("DisclosureTriangle", "Pick filters")
	p.Choose("State", "pending")
	p.Click("button", "Apply")
	p.WaitText(orchestrator.Title(asked.Title))
	p.Click("DisclosureTriangle", "Views")
	p.Fill("Save this list as", "waiting")
	p.Click("button", "Save view")
	p.Click("DisclosureTriangle", "Views")
	p.Click("link", "waiting")
	p.Until(`location.href.includes("pending")`) // the address is read once the link has led there
	p.Click("DisclosureTriangle", "columns")
	p.Click("button", "Show these")
	p.Click("link", "Export")
	p.WaitText("JSON")
	if browsertest.Eval[int](p, `document.querySelectorAll("main a[href*='/api/v1/audit/export'], main form[action*='/api/v1/audit/export']").length`) == 0 {
		t.Error("the export page leads to no file")
	}
	h.plain(p, "/audit/export?list=requests&filter=time:30d", "JSON")
	h.plain(p, "/audit/verify", "Verify")
	p.Click("button", "Verify now")
	p.WaitText("by ann")

	h.plain(p, "/triggers", "ci-failed")
	p.Open(browsertest.Eval[string](p, `document.querySelector("a[data-open][href$='/ci-failed']").href`))
	p.Fill("Payload, as JSON", `{"action":"completed","workflow_run":{"name":"Build"}}`)
	p.Fill("Event, as the sender names it", "workflow_run")
	p.Click("button", "Would it fire?")
	p.WaitText("Fix Build")
	h.plain(p, "/triggers/ci-failed", "The key stands twice.")
	h.plain(p, "/triggers/ci-failed/deliveries/"+d.ID, "duplicate_key")
	p.Click("button", "Redeliver")
	p.WaitText("It is delivered again.")
}

// The other pages that came with the dashboard do what they offer without JavaScript.
func TestSettingsContextAndFiguresWithoutScript(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor)
	task, _, _ := h.failedTask(ann)
	p := h.scriptless(ann)
	h.plain(p, "/", "Needs you")
	h.plain(p, "/settings/people", "Add")
	p.Fill("Name: what events, commits and pages call them", "cleo")
	p.Click("checkbox", "approver: reads requests and decides them")
	p.Click("button", "Add")
	p.Wait("heading", "cleo")
	p.Click("checkbox", "auditor: reads everything, changes nothing")
	p.Click("button", "Save roles")
	p.WaitText("The roles were changed.")
	p.Click("button", "Make a sign-in link")
	p.WaitText("/login/link?code=")
	h.plain(p, "/settings/tokens", "Works for")
	p.Fill("What it is for", "ci")
	p.Click("checkbox", "tasks:write send tasks")
	p.Click("button", "Make the token")
	p.WaitText("gth_")
	p.Click("DisclosureTriangle", browsertest.Eval[string](p, `document.querySelector("summary[aria-label^='Revoke ci']").getAttribute("aria-label")`))
	p.Click("button", "Revoke this token")
	p.WaitText("The token was revoked")
	h.plain(p, "/settings/you", "Time zone")
	p.Fill("Time zone; empty is that of the browser", "Asia/Tokyo")
	p.Click("button", "Save")
	p.WaitText("Times are shown in that zone from now on.")

	h.plain(p, "/context", "notes")
	p.Click("link", "notes")
	p.WaitText("retry")
	h.plain(p, "/insights", "Who waits for whom")
	h.plain(p, "/waits", "wait")
	h.plain(p, "/agents", "coder")
	for _, tab := range []string{"tree", "timeline", "events", "result", "context", "flow", "figures"} {
		h.plain(p, "/delegations/"+task.ID+"?tab="+tab, "Timeline")
	}
	h.plain(p, "/chat", "No messages yet")
	p.Fill("Message", "Tidy the notes")
	p.Click("button", "Send")
	p.WaitText("Tidy the notes")
}
