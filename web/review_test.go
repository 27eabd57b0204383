package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// asked is a request of dora's with three files, and ann and bob who may decide it.
func asked(t *testing.T) (h *house, address string, r approval.Request, ann, bob *browser) {
	h = open(t)
	r = h.request(h.user("dora", people.Operator), func(r *approval.Request) {
		for _, path := range []string{"site.css", "no text\xff"} {
			r.Revision.Files = append(r.Revision.Files, patch.File{Path: path, Status: patch.Modified, Added: 1, Removed: 1, OldMode: "100644", NewMode: "100644"})
		}
	})
	return h, "/approvals/" + r.ID, r, h.signIn(h.user("ann", people.Approver)), h.signIn(h.user("bob", people.Approver))
}

func has(t *testing.T, a answer, status int, words ...string) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("%s: %d, want %d", a.Request.URL, a.StatusCode, status)
	}
	for _, w := range words {
		if !strings.Contains(a.body, w) {
			t.Errorf("%s lacks %q", a.Request.URL, w)
		}
	}
}

func TestACommentIsKeptUntilAVerdictSendsIt(t *testing.T) {
	h, address, r, ann, bob := asked(t)
	has(t, ann.get(address+"?comment=F1R1"), 200, `id="remark-form"`, "Comment on added line 1")
	line := url.Values{"path": {"retry.go"}, "side": {"R"}, "line": {"1"}, "revision": {"1"}, "at": {"F1R1"}, "back": {"view=split&comment=F1R1&next=//evil"}}
	with := func(do, text string) url.Values {
		f := url.Values{"do": {do}, "text": {text}}
		for k, v := range line {
			f[k] = v
		}
		return f
	}
	saved := ann.post(address+"/drafts", with("save", "Why <b>zero</b>?"))
	has(t, saved, 200, "Why &lt;b&gt;zero&lt;/b&gt;?", "not sent", `<span id="draft-count" aria-hidden="true"> · 1`)
	if at := saved.Request.URL; at.Path != address || at.RawQuery != "view=split" || at.Fragment != "F1R1" {
		t.Errorf("led to %s", at)
	}
	if strings.Contains(bob.get(address).body, "Why &lt;b&gt;") {
		t.Error("bob reads ann's draft")
	}
	has(t, ann.post(address+"/drafts", with("save", "")), http.StatusBadRequest, "The comment is empty.")
	has(t, ann.post(address+"/drafts", with("destroy", "")), http.StatusBadRequest)
	long := ann.post(address+"/drafts", with("save", strings.Repeat("x", approval.MaxComment+1)))
	has(t, long, http.StatusBadRequest, strings.Repeat("x", approval.MaxComment), `id="remark-form"`)
	// The page after a refusal asks for itself, not for the form's address.
	if strings.Contains(long.body, address+"/drafts?") {
		t.Error("the live part asks for the address of the form")
	}
	has(t, ann.post(address+"/decision", url.Values{"verdict": {"request_changes"}, "digest": {r.Revision.Digest}, "drafts": {"1"}, "comment": {""}}), 200, "1 comment on a line", "retry.go:1")
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if got.State != approval.ChangesRequested || len(got.Decisions[0].Comments) != 1 || got.Decisions[0].Comments[0].Text != "Why <b>zero</b>?" {
		t.Errorf("stored: %s %+v", got.State, got.Decisions)
	}
	has(t, bob.get(address), 200, "Why &lt;b&gt;zero&lt;/b&gt;?")
}

func TestADeletedCommentIsGone(t *testing.T) {
	_, address, _, ann, _ := asked(t)
	form := url.Values{"path": {"site.css"}, "side": {"L"}, "line": {"1"}, "revision": {"1"}, "do": {"save"}, "text": {"Old one"}}
	has(t, ann.post(address+"/drafts", form), 200, "Old one")
	form.Set("do", "delete")
	if a := ann.post(address+"/drafts", form); strings.Contains(a.body, "Old one") {
		t.Error("it is still there")
	}
}

// This server makes no revisions, so the answer is a refusal: nothing that was typed or
// ticked is lost by it.
func TestARefusedChoiceAndARefusedEditKeepWhatWasThere(t *testing.T) {
	h, address, r, ann, _ := asked(t)
	has(t, ann.get(address+"?pick=1"), 200, `name="pick" value="3"`, "Approve the ticked files")
	none := ann.post(address+"/decision", url.Values{"verdict": {"approve"}, "digest": {r.Revision.Digest}, "some": {"1"}, "back": {"pick=1"}})
	has(t, none, http.StatusBadRequest, "No file is chosen.", "Approve 0 of 3 files")
	some := ann.post(address+"/decision", url.Values{"verdict": {"approve"}, "digest": {r.Revision.Digest}, "some": {"1"}, "pick": {"1", "3"}, "tick": {"unviewed"}, "back": {"pick=1"}})
	has(t, some, http.StatusServiceUnavailable, "Approve 2 of 3 files")
	has(t, ann.get(address+"?edit=all"), 200, ">\nfirst\r\nof retry.go</textarea>", "you cannot approve it")
	edit := url.Values{"digest": {r.Revision.Digest}, "back": {"edit=F1"}, "text-1": {"first\r\nof retry.go"}}
	has(t, ann.post(address+"/edit", edit), http.StatusBadRequest, "No file is different from before")
	edit.Set("text-1", "mine & yours")
	has(t, ann.post(address+"/edit", edit), http.StatusServiceUnavailable, ">\nmine &amp; yours</textarea>")
	edit.Set("digest", strings.Repeat("0", 64))
	has(t, ann.post(address+"/edit", edit), http.StatusConflict)
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if got.State != approval.Pending || len(got.Decisions) != 0 {
		t.Errorf("stored: %s %+v", got.State, got.Decisions)
	}
}

// A reader without the right to decide reads everything and is offered nothing.
func TestWhoMayNotDecideMayNotComment(t *testing.T) {
	h, address, _, _, _ := asked(t)
	b := h.signIn(h.user("eve", people.Auditor))
	a := b.get(address + "?comment=F1R1&pick=1&edit=all")
	has(t, a, 200, "retry.go")
	for _, not := range []string{`id="remark-form"`, `name="pick"`, "<textarea class=\"editor\"", `id="verdict"`} {
		if strings.Contains(a.body, not) {
			t.Errorf("the page has %s", not)
		}
	}
	form := url.Values{"path": {"retry.go"}, "side": {"R"}, "line": {"1"}, "revision": {"1"}, "do": {"save"}, "text": {"Mine"}}
	if a := b.post(address+"/drafts", form); a.StatusCode != http.StatusForbidden {
		t.Errorf("a comment: %d", a.StatusCode)
	}
	if a := b.post(address+"/edit", url.Values{"text-1": {"x"}}); a.StatusCode != http.StatusForbidden {
		t.Errorf("an edit: %d", a.StatusCode)
	}
}

// The live parts ask for the head alone: no diff is made for them.
func TestTheHeadIsThereWithoutTheDiff(t *testing.T) {
	_, address, _, ann, _ := asked(t)
	a := ann.get(address + "?part=head&rev=1")
	has(t, a, 200, `id="review-status"`, `id="review-bar"`, "3 files")
	if strings.Contains(a.body, "n = 0") {
		t.Error("the diff is in it")
	}
}

// A search goes over all of a diff of which a page shows a part.
func TestALongDiffIsSearchedWhole(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator), func(r *approval.Request) {
		for range 40 {
			r.Revision.Files = append(r.Revision.Files, patch.File{Path: "x.go", Status: patch.Modified, Added: 60, Removed: 40})
		}
	})
	ann := h.signIn(h.user("ann", people.Approver))
	a := ann.get("/approvals/" + r.ID + "?find=SCRIPT%3E")
	has(t, a, 200, "41 lines with “SCRIPT&gt;”", "added line 1", "&lt;script&gt;alert(1)", "page=8")
	has(t, ann.get("/approvals/"+r.ID+"?find=nowhere"), 200, "No line of the diff has “nowhere”")
}

// What was sent is answered and resolved with plain forms; who may not decide reads it.
func TestCommentsAreAnsweredWithoutScript(t *testing.T) {
	h, address, r, ann, bob := asked(t)
	line := url.Values{"path": {"retry.go"}, "side": {"R"}, "line": {"1"}, "revision": {"1"}, "do": {"save"}, "text": {"Why <b>zero</b>?"}}
	has(t, ann.post(address+"/drafts", line), 200)
	has(t, ann.post(address+"/decision", url.Values{"verdict": {"request_changes"}, "digest": {r.Revision.Digest}, "drafts": {"1"}}), 200)
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	thread := got.Decisions[0].ID + ".1"
	act := func(do, text, seen string) url.Values {
		return url.Values{"thread": {thread}, "do": {do}, "text": {text}, "seen": {seen}, "back": {"view=split&next=//evil"}}
	}
	said := bob.post(address+"/threads", act("reply", "<i>Zero</i> is none.", "0"))
	has(t, said, 200, "&lt;i&gt;Zero&lt;/i&gt; is none.", "Resolve the comment on retry.go:1")
	if at := said.Request.URL; at.Path != address || at.RawQuery != "view=split" || at.Fragment != "t-"+thread {
		t.Errorf("led to %s", at)
	}
	long := ann.post(address+"/threads", act("reply", strings.Repeat("y", approval.MaxComment+1), "1"))
	has(t, long, http.StatusBadRequest, strings.Repeat("y", approval.MaxComment)+"</textarea>", "is the limit")
	has(t, ann.post(address+"/threads", act("resolve", "", "1")), 200, "Resolved by <b>ann</b>")
	has(t, ann.post(address+"/threads", act("resolve", "", "1")), 200, "Resolved by <b>ann</b>")
	has(t, ann.post(address+"/threads", act("forget", "", "1")), http.StatusBadRequest, "There is no act")
	eve := h.signIn(h.user("eve", people.Auditor))
	page := eve.get(address)
	has(t, page, 200, "&lt;i&gt;Zero&lt;/i&gt; is none.")
	has(t, eve.get(address+"/evidence"), 200, "ann on retry.go:1", "bob replied", "&lt;i&gt;Zero&lt;/i&gt; is none.", "ann resolved it")
	if strings.Contains(page.body, `class="remark-acts thread-form"`) {
		t.Error("an auditor is offered a form")
	}
	has(t, eve.post(address+"/threads", act("reopen", "", "9")), http.StatusForbidden)
	other := act("reopen", "", "9")
	other.Set("thread", "dec_none.1")
	has(t, ann.post(address+"/threads", other), http.StatusNotFound)
}

// Words that come too late are given back, also where no form takes them any more.
func TestWordsThatComeTooLateAreGivenBack(t *testing.T) {
	h, address, r, ann, bob := asked(t)
	const gone = "What you wrote was not sent"
	line := url.Values{"path": {"retry.go"}, "side": {"R"}, "line": {"1"}, "revision": {"1"}, "at": {"F1R1"}, "do": {"save"}, "text": {"Why?"}}
	has(t, ann.post(address+"/drafts", line), 200)
	changes := url.Values{"verdict": {"request_changes"}, "digest": {r.Revision.Digest}, "drafts": {"1"}}
	has(t, ann.post(address+"/decision", changes), 200)
	has(t, bob.post(address+"/decision", url.Values{"verdict": {"reject"}, "digest": {r.Revision.Digest}, "comment": {"Too <slow>."}}), http.StatusConflict, gone, "Too &lt;slow&gt;.</textarea>")
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	reply := url.Values{"thread": {got.Decisions[0].ID + ".1"}, "do": {"reply"}, "text": {"Because <so>."}, "seen": {"0"}}
	h.must(h.store.InGate(h.ctx, r.TaskID, func(tx approval.Tx) error {
		cur, err := tx.Request(h.ctx, r.ID)
		if err != nil {
			return err
		}
		cur.State = approval.Cancelled
		return tx.SaveRequest(h.ctx, cur)
	}))
	has(t, bob.post(address+"/threads", reply), http.StatusConflict, "stay as they are", gone, "Because &lt;so&gt;.</textarea>")
	if strings.Contains(bob.get(address).body, gone) {
		t.Error("a page that nothing was sent to gives words back")
	}
}

// A comment on a file whose lines are on another page is found there.
func TestACommentOfAnotherPageIsFoundThere(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator), func(r *approval.Request) {
		for i := range 40 {
			r.Revision.Files = append(r.Revision.Files, patch.File{Path: fmt.Sprintf("x%02d.go", i), Status: patch.Modified, Added: 60, Removed: 40})
		}
	})
	ann, address := h.signIn(h.user("ann", people.Approver)), "/approvals/"+r.ID
	has(t, ann.post(address+"/drafts", url.Values{"path": {"x39.go"}, "side": {"R"}, "line": {"1"}, "revision": {"1"}, "do": {"save"}, "text": {"Far away."}}), 200)
	has(t, ann.post(address+"/decision", url.Values{"verdict": {"request_changes"}, "digest": {r.Revision.Digest}, "drafts": {"1"}}), 200)
	first := ann.get(address)
	has(t, first, 200, `page=8#F41"><code>x39.go:1`)
	if strings.Contains(first.body, "Resolve the comment on x39.go") || strings.Contains(first.body, "on files that this revision does not change") {
		t.Error("it stands on the first page, too")
	}
	has(t, ann.get(address+"?page=8"), 200, "Resolve the comment on x39.go:1")
}
