package views

import "testing"

func TestEvidenceHasAllThatAnAuditorAsks(t *testing.T) {
	html := render(t, Evidence(evidenceFixture()))
	mustContain(t, html, "dora", "by webhook ci-failed", "core", "2 approvals of maintainers needed", "any(patch.files", "9f2c1a7e5b1d", "1 group was added",
		"asked for changes on the web", "approved 1 file only on Telegram", "1 of 3 files marked as viewed", "after the page was opened", "ticked: CI file changed",
		"needs ctx here?", "<b>failed</b>", "before this are in the bundle", "mode 100644 → 100755", "700 more are not printed", digest, commit,
		"4 of the task&#39;s 1,412 events", "3 events have no data any more", "up to position 120441", "2026-09-28 14:02:07 UTC",
		`href="/api/v1/approvals/`+aprID+`/evidence?format=bundle"`, "gatehouse audit verify --file gatehouse-"+aprID+".jsonl")
	html = render(t, Evidence(evidenceQuestion()))
	mustContain(t, html, "Nobody has decided.", "What would be handed on, by kik", "Please do it.", "not sealed yet")
	mustLack(t, html, "Base, tree, commit", "landed as")
}
