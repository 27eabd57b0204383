package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store"
)

// An auditor holds a task with plain forms; its page says so, retention passes it by, and
// once the hold is lifted the page says what went.
func TestALegalHoldWithFormsAlone(t *testing.T) {
	h := open(t)
	dora, aud := h.user("dora", people.Operator), h.user("aud", people.Auditor)
	_, root := h.task(dora, "Fix the zebra")
	b := h.signIn(aud)
	says := func(a answer, status int, words ...string) {
		t.Helper()
		for _, w := range words {
			if a.StatusCode != status || !strings.Contains(a.body, w) {
				t.Errorf("%d lacks %q\n%.2000s", a.StatusCode, w, a.body)
			}
		}
	}
	set := func(what, subject, reason string) answer {
		return b.post("/audit/holds", url.Values{"what": {what}, "subject": {subject}, "reason": {reason}})
	}
	says(b.get("/audit/holds"), http.StatusOK, "Nothing is held", "Retention is off", "Set the hold")
	says(set("id", root.TaskID, " "), http.StatusBadRequest, "need a reason", root.TaskID)
	says(set("id", "tsk_nothing", "case 12"), http.StatusNotFound, "case 12")
	says(set("id", root.ID, "case <b>12</b>\u202e"), http.StatusOK, "The hold is set", "case &lt;b&gt;12", "aud")
	says(set("id", root.TaskID, "again"), http.StatusConflict, "aud holds this since")
	says(b.get("/delegations/"+root.TaskID), http.StatusOK, "under legal hold", "case &lt;b&gt;12")
	h.cancelled(root)
	retain := func() retention.Done {
		t.Helper()
		done, _, err := h.store.Retain(h.ctx, retention.Texts, time.Now().Add(time.Minute), store.After{}, 1000)
		h.must(err)
		return done
	}
	if done := retain(); !done.Nothing() {
		t.Fatalf("it was held, and %+v went", done)
	}
	id := regexp.MustCompile(`hld_[0-9a-z]{26}`).FindString(b.get("/audit/holds").body)
	says(b.post("/audit/holds/"+id+"/lift", url.Values{"reason": {""}}), http.StatusBadRequest, "need a reason")
	says(b.post("/audit/holds/"+id+"/lift", url.Values{"reason": {"closed"}}), http.StatusOK, "The hold is lifted")
	says(b.get("/audit/holds?lifted=true"), http.StatusOK, "lifted by aud", "closed")
	if done := retain(); done.Tasks != 1 {
		t.Fatalf("%+v", done)
	}
	page := b.get("/delegations/" + root.TaskID)
	says(page, http.StatusOK, "Data dropped by retention on ", retention.GoneText)
	if strings.Contains(page.body, "zebra") || strings.Contains(page.body, "under legal hold") {
		t.Errorf("%.3000s", page.body)
	}
	// Who may not read the audit neither sees nor sets holds.
	d := h.signIn(dora)
	if a := d.get("/audit/holds"); a.StatusCode != http.StatusForbidden {
		t.Errorf("an operator got %d", a.StatusCode)
	}
	if a := d.post("/audit/holds", url.Values{"what": {"everything"}, "reason": {"x"}}); a.StatusCode != http.StatusForbidden {
		t.Errorf("an operator got %d", a.StatusCode)
	}
}

// cancelled ends a task.
func (h *house) cancelled(root orchestrator.Delegation) {
	h.Helper()
	h.must(h.store.InTask(h.ctx, root.TaskID, func(tx orchestrator.Tx) error {
		row, err := tx.Delegation(h.ctx, root.ID)
		if err != nil {
			return err
		}
		now := tx.Now()
		was := row.State
		row.State, row.EndedAt, tx.Task().EndedAt = orchestrator.Cancelled, &now, &now
		return tx.Move(h.ctx, row, was, row.Attempt)
	}))
}
