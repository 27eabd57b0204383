package web_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store/storetest"
)

// handedOn makes a request of dora's a question about a hand-over of kik's.
func handedOn(text string) func(*approval.Request) {
	return func(r *approval.Request) {
		r.Kind, r.Handover = approval.Handover, &orchestrator.HandoverQuestion{From: "kik", To: "coder", Text: text, Context: map[string]string{"branch": "main"},
			Handover: &agent.Handover{Goto: "coder", Update: agent.HandoverUpdate{Context: agent.HandoverContext{TaskDescription: "the release"}}}}
		r.Title, r.Revision = r.Handover.Title(), approval.Revision{N: 1, State: approval.Pending, Digest: digest, Text: text}
	}
}

// H18, K44: the page of a hand-over shows what would be handed on, and its plain forms say
// yes or no; what only a patch has is not there.
func TestThePageOfAHandover(t *testing.T) {
	h := open(t)
	ann, bob := h.signIn(h.user("ann", people.Approver)), h.token(h.user("bob", people.Approver), people.ApprovalsRead, people.ApprovalsDecide)
	dora := h.user("dora", people.Operator)
	r := h.request(dora, handedOn("Deploy <b>now</b> gpj\u202eexe\nwith the key"))
	page := ann.get("/approvals/" + r.ID)
	has(t, page, http.StatusOK, "Approve handoff to coder? Context: Deploy &lt;b&gt;now&lt;/b&gt;", "What coder would be given", "with the key", "U+202E",
		"Context that goes with it", "branch", "the release", `value="approve"`, `value="reject"`, "Skip to the question", "of 1 yes")
	for _, not := range []string{"request_changes", "<b>now</b>", "\u202e", "merge commit", ">Edit<", "Files"} {
		if strings.Contains(page.body, not) {
			t.Errorf("the page has %q", not)
		}
	}
	has(t, ann.get("/approvals/"+r.ID+"?part=head"), http.StatusOK, "kik</b> asks to hand this to <b>coder")
	has(t, ann.get("/approvals"), http.StatusOK, "kik asks before coder works")
	has(t, ann.get("/"), http.StatusOK, "kik asks before coder works")
	card := ann.get("/chat")
	has(t, card, http.StatusOK, "with the key", ">Reject<")
	if strings.Contains(card.body, "request_changes") {
		t.Error("the chat offers changes to a question")
	}

	got := h.expect(http.StatusOK, "", http.MethodGet, "/api/v1/approvals/"+r.ID, bob, "").json(t)
	q, _ := got["question"].(map[string]any)
	if got["kind"] != "handover" || q["from"] != "kik" || q["to"] != "coder" || len(got["files"].([]any)) != 0 {
		t.Errorf("the API answers %v", got)
	}
	if may := got["may"].([]any); len(may) != 2 {
		t.Errorf("may %v", may)
	}
	h.expect(http.StatusNotFound, "not_found", http.MethodGet, "/api/v1/approvals/"+r.ID+"/patch", bob, "")
	for _, body := range []string{`"verdict":"request_changes","comment":"c"`, `"verdict":"approve","files":["a"]`, `"verdict":"edit","patch":"x"`} {
		h.expect(http.StatusBadRequest, "bad_request", http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", bob, `{"digest":"`+digest+`",`+body+`}`)
	}
	has(t, ann.get("/api/v1/approvals/"+r.ID+"/evidence"), http.StatusOK, "What would be handed on", "with the key")
	done := ann.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"reject"}, "digest": {digest}, "comment": {"Not now."}})
	has(t, done, http.StatusOK, "coder was not asked to work", "Not now.")
	d, err := h.store.Delegation(h.ctx, r.DelegationID)
	h.must(err)
	if d.State != orchestrator.Rejected || d.Error.Code != "human_refused" {
		t.Errorf("%s, %+v", d.State, d.Error)
	}
}

// What was asked before files travelled along is shown, and decided on the digest that it
// had then: its question has none of the newer fields, and its revision no tree.
func TestAHandoverOfAnOlderVersionIsStillDecided(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "house.db")
	h := openAt(t, storetest.Ready(t, address))
	ann, bob := h.signIn(h.user("ann", people.Approver)), h.token(h.user("bob", people.Approver), people.ApprovalsRead)
	r := h.request(h.user("dora", people.Operator), handedOn("Deploy release 7"))
	// As the older version wrote it, and as it reckoned the digest.
	const fields = `"from":"kik","to":"coder","text":"Deploy release 7","context":{"branch":"main"}`
	sum := sha256.Sum256([]byte(`{"task":"` + r.TaskID + `",` + fields + `}`))
	old := hex.EncodeToString(sum[:])
	db, err := sql.Open("sqlite", strings.TrimPrefix(address, "sqlite:"))
	h.must(err)
	defer db.Close()
	_, err = db.ExecContext(h.ctx, "update requests set question = ? where id = ?", "{"+fields+"}", r.ID)
	h.must(err)
	_, err = db.ExecContext(h.ctx, "update revisions set digest = ? where request_id = ?", old, r.ID)
	h.must(err)
	read, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if now, err := read.Handover.Digest(r.TaskID); err != nil || now != old || read.Revision.Digest != old || read.Travels() {
		t.Fatalf("the digest is %s, was %s: %v", now, old, err)
	}
	has(t, ann.get("/approvals/"+r.ID), http.StatusOK, "What coder would be given", "Deploy release 7", old, `value="approve"`)
	has(t, ann.get("/approvals/"+r.ID+"/evidence"), http.StatusOK, "What would be handed on", "Deploy release 7", old)
	got := h.expect(http.StatusOK, "", http.MethodGet, "/api/v1/approvals/"+r.ID, bob, "").json(t)
	if q := got["question"].(map[string]any); got["digest"] != old || q["text"] != "Deploy release 7" || q["tree"] != nil {
		t.Errorf("the API answers %v", got)
	}
	has(t, ann.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"approve"}, "digest": {old}, "revision": {"1"}}), http.StatusOK, "the work was handed to coder")
	d, err := h.store.Delegation(h.ctx, r.DelegationID)
	h.must(err)
	if d.State != orchestrator.Queued {
		t.Errorf("it is %s", d.State)
	}
}

// A yes is offered where all of the question is: 200 kB are on the page and not in the chat.
func TestALongHandoverIsApprovedOnItsPage(t *testing.T) {
	h := open(t)
	ann := h.signIn(h.user("ann", people.Approver))
	r := h.request(h.user("dora", people.Operator), handedOn(strings.Repeat("a long line of words\n", 10_000)+"the end"))
	card := ann.get("/chat").body
	if strings.Contains(card, ">Approve<") || !strings.Contains(card, "To approve, open the page") || len(card) > 60_000 {
		t.Errorf("the card of a long question, %d bytes", len(card))
	}
	post := url.Values{"verdict": {"approve"}, "digest": {digest}}
	if a := ann.post("/chat/approvals/"+r.ID+"/decision", post); a.StatusCode != http.StatusForbidden {
		t.Errorf("approved in the chat: %d", a.StatusCode)
	}
	has(t, ann.get("/approvals/"+r.ID), http.StatusOK, "the end", `value="approve"`, `name="tick" value="diff_cut" required`)
	post.Set("tick", "diff_cut")
	has(t, ann.post("/approvals/"+r.ID+"/decision", post), http.StatusOK, "the work was handed to coder")
	d, err := h.store.Delegation(h.ctx, r.DelegationID)
	h.must(err)
	if d.State != orchestrator.Queued {
		t.Errorf("it is %s", d.State)
	}
	has(t, ann.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"withdraw"}, "digest": {digest}}), http.StatusOK, `value="approve"`)
}
