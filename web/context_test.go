package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"
)

// With forms alone: an empty page, a value that is written, refused, read, and deleted;
// its history stays (P21b).
func TestTheSharedContextWithFormsAlone(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	_, root := h.task(dora, "Fix")
	b := h.signIn(dora)
	says := func(a answer, status int, words ...string) {
		t.Helper()
		for _, w := range words {
			if a.StatusCode != status || !strings.Contains(a.body, w) {
				t.Errorf("%d lacks %q\n%.3000s", a.StatusCode, w, a.body)
			}
		}
	}
	says(b.get("/context"), http.StatusOK, "Agents have written nothing yet")
	write := func(key, value, ttl string) answer {
		return b.post("/context", url.Values{"do": {"save"}, "ns": {"security"}, "key": {key}, "value": {value}, "ttl": {ttl}})
	}
	says(write("sqli_attempt_<ip>", "<script>alert(1)</script>", "security"), http.StatusOK, "The value was written", "&lt;script&gt;", ">in 6 d", "dora", "wrote it", "by hand") // K37, K38
	says(write("a\u202eb", "kept words", "security"), http.StatusBadRequest, "invisible characters", "kept words")
	says(write("k", "kept words", "soon"), http.StatusBadRequest, "security (7d)")
	says(write("big", strings.Repeat("x", 300<<10), ""), http.StatusBadRequest, "are the limit")
	h.must(h.store.InTask(h.ctx, root.TaskID, func(tx orchestrator.Tx) error {
		_, err := tx.NoteUses(h.ctx, []sharedctx.Use{{Namespace: "security", Key: "sqli_attempt_<ip>", Kind: sharedctx.Read, Agent: "reviewer", DelegationID: root.ID}})
		return err
	}))
	says(b.get("/context?prefix=sec"), http.StatusOK, "/context?ns=security")
	says(b.get("/context?prefix=%25"), http.StatusOK, "No namespace begins with") // K41
	says(b.get(views.ContextHref("security", "")+"&prefix=sqli_"), http.StatusOK, "read by reviewer")
	says(b.get(views.ContextHref("security", "")+"&prefix=sqliX"), http.StatusOK, "No key here begins with")
	before, err := h.store.Context("").Get(h.ctx, "security", "sqli_attempt_<ip>")
	h.must(err)
	says(b.get(views.ContextHref("security", "sqli_attempt_<ip>")), http.StatusOK, views.DelegationHref(root.ID), "read it")
	if after, err := h.store.Context("").Get(h.ctx, "security", "sqli_attempt_<ip>"); err != nil || !after.ExpiresAt.Equal(*before.ExpiresAt) { // K43: pages keep nothing alive
		t.Errorf("a look moved the expiry: %v %v", after.ExpiresAt, err)
	}

	auditor := h.signIn(h.user("olga", people.Auditor))
	if a := auditor.get(views.ContextHref("security", "sqli_attempt_<ip>")); a.StatusCode != http.StatusOK || strings.Contains(a.body, "Delete this value") || strings.Contains(a.body, `id="write"`) {
		t.Errorf("an auditor sees %d with forms", a.StatusCode)
	}
	if a := auditor.post("/context", url.Values{"do": {"delete"}, "ns": {"security"}, "key": {"sqli_attempt_<ip>"}}); a.StatusCode != http.StatusForbidden {
		t.Errorf("an auditor deletes: %d", a.StatusCode)
	}
	says(b.post("/context", url.Values{"do": {"delete"}, "ns": {"security"}, "key": {"sqli_attempt_<ip>"}}), http.StatusOK, "The value was deleted")
	says(b.get(views.ContextHref("security", "sqli_attempt_<ip>")), http.StatusOK, "no such value, or it has expired", "deleted it")

	many := time.Now()
	for i := range 60 {
		e, err := sharedctx.New(many, "codebase", strings.Repeat("k", i+1), strings.Repeat("ü", 2000), "dora", 0)
		h.must(err)
		_, err = h.store.Context("dora").Set(h.ctx, e)
		h.must(err)
	}
	says(b.get(views.ContextHref("codebase", "")), http.StatusOK, "The newest 50 are shown", "cut: 4,000 bytes in all")
}
