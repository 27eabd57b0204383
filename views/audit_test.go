package views_test

import (
	"testing"

	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"
	auditview "gatehouse/views/audit"
	evidenceview "gatehouse/views/evidence"
)

func TestEvidenceHasAllThatAnAuditorAsks(t *testing.T) {
	html := render(t, evidenceview.Evidence(evidenceFixture()))
	mustContain(t, html, "dora", "by webhook ci-failed", "core", "2 approvals of maintainers needed", "any(patch.files", "9f2c1a7e5b1d", "1 group was added",
		"asked for changes on the web", "approved 1 file only on Telegram", "1 of 3 files marked as viewed", "after the page was opened", "ticked: CI file changed",
		"needs ctx here?", "<b>failed</b>", "before this are in the bundle", "mode 100644 → 100755", "700 more are not printed", digest, "landed on main as <code>"+commit+"</code>",
		"4 of the task&#39;s 1,412 events", "3 events have no data any more", "up to event 1412 of 1412, position 120441", "2026-09-28 14:02:07 UTC",
		`href="/api/v1/approvals/`+aprID+`/evidence?format=bundle"`, "gatehouse audit verify --file gatehouse-"+aprID+".jsonl")
	pushed := evidenceFixture()
	pushed.Request.Revision.Deliver, pushed.Request.Revision.Branch = patch.DeliverBranch, "gatehouse/coder-loop"
	html = render(t, evidenceview.Evidence(pushed))
	mustContain(t, html, "pushed to gatehouse/coder-loop as <code>"+commit+"</code>")
	mustLack(t, html, "landed on main as")
	html = render(t, evidenceview.Evidence(evidenceQuestion()))
	mustContain(t, html, "Nobody has decided.", "What would be handed on, by kik", "Please do it.", "not sealed yet")
	mustLack(t, html, "Base, tree, commit", "landed-line")
}

func TestTheAuditorsListSaysWhatItShows(t *testing.T) {
	html := render(t, auditview.Audit(auditFixture(history.Requests)))
	mustContain(t, html, `name="filter" value="approver:bob repository:app time:30d"`, "11 requests of 482", "sealed up to", "verified", "(Europe/Berlin)", "2026-09-28 14:02",
		"bob telegram, cleo web", "rule docs (auto)", "bob web (reject)", "not all files viewed", "within 10 s", `href="/approvals/`+aprID+`/evidence"`, "older ›", `role="switch"`,
		">4be1f02</code>", "core, 2 needed")
	mustLack(t, html, `aria-label="Ready questions" hidden`, "data-live=\"all\"")
	mustContain(t, render(t, auditview.Audit(auditEmptyFixture(482, nil))), "No request matches", "482 without the filter.", ">Clear</a>", "nothing is sealed yet")
	mustContain(t, render(t, auditview.Audit(auditEmptyFixture(0, nil))), "There are no requests yet.")
	html = render(t, auditview.Audit(auditEmptyFixture(482, &views.FilterProblem{Part: "aprover:bob", Text: "Did you mean approver?"})))
	mustContain(t, html, `aria-invalid="true"`, "Did you mean approver?", "aprover:bob time:30d", "nothing is listed")
	live := auditFixture(history.Requests)
	live.Live = true
	mustContain(t, render(t, auditview.Audit(live)), `data-live="all"`, `data-hold="audit"`, `aria-checked="true"`)
}
