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
	"gatehouse/web/browsertest"
)

const unviewed = `name="tick" value="unviewed"`

// A file is open to its end, on a page of its own, or unfolded; that takes the tick away
// which says that none was. It is the reader's own, and no other site's doing.
func TestAFileThatWasOpenedTakesATickAway(t *testing.T) {
	h, address, r, ann, bob := asked(t)
	has(t, ann.get(address), 200, unviewed, "I approve without having opened any file", `data-opened-to="`+address+`/opened"`, `name="revision" value="1"`)
	req, err := http.NewRequest(http.MethodGet, h.url+address+"?file=retry.go", nil)
	h.must(err)
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err := ann.client.Do(req)
	h.must(err)
	h.must(res.Body.Close())
	for _, not := range []string{"?file=nothing", "?since=1&file=retry.go", "?part=head", "?part=F9", "?view=split"} {
		ann.get(address + not)
		has(t, ann.get(address), 200, unviewed)
	}
	for _, bad := range []url.Values{{}, {"revision": {"1"}}, {"revision": {"1"}, "file": {"4"}}, {"revision": {"1"}, "file": {"1", "x"}}, {"revision": {"2"}, "file": {"1"}}} {
		has(t, ann.post(address+"/opened", bad), http.StatusBadRequest)
	}
	has(t, ann.get(address), 200, unviewed)
	for range 2 {
		has(t, ann.post(address+"/opened", url.Values{"revision": {"1"}, "file": {"3", "1"}}), http.StatusNoContent)
	}
	if page := ann.get(address); strings.Contains(page.body, unviewed) || !strings.Contains(page.body, `<span data-viewed-n>0</span> of 3 viewed`) {
		t.Error("what was opened is not known, or is a mark now")
	}
	has(t, bob.get(address), 200, unviewed)
	for _, way := range []string{"?file=retry.go", "?part=F2", "?open=3:1-9"} {
		_, address, _, ann, _ := asked(t)
		ann.get(address + way)
		if strings.Contains(ann.get(address).body, unviewed) {
			t.Errorf("%s opens nothing", way)
		}
	}
	has(t, ann.post(address+"/decision", url.Values{"verdict": {"approve"}, "digest": {r.Revision.Digest}, "revision": {"1"}}), 200, "Your approval was counted.")
	has(t, ann.get(address+"/evidence"), 200, "2 of 3 files opened, 0 marked as viewed")
	has(t, bob.get("/approvals?state=all"), 200, "read on the web by ann: 2 of 3 files")
	has(t, bob.get(address+"/evidence"), 200, "shown: page")
}

// Ticks are the server's to ask for: the page is shown again with what was typed and
// ticked, and with what is missing; a program is told the codes.
func TestMissingTicksAreRefusedOnThePageAndByTheAPI(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator), func(r *approval.Request) {
		r.Revision.Warnings = []patch.Warning{{Code: "ci_file", Path: "retry.go", Text: "It changes what CI runs."}, {Code: "bidi", Path: "retry.go", Text: "It has U+202E."}}
	})
	address := "/approvals/" + r.ID
	bob := h.user("bob", people.Approver)
	page := h.signIn(bob)
	form := url.Values{"verdict": {"approve"}, "digest": {r.Revision.Digest}, "revision": {"1"}, "comment": {"Fine <so>."}, "tick": {"bidi", "nonsense"}}
	has(t, page.post(address+"/decision", form), http.StatusConflict, "for 2 things are not ticked: ci_file (retry.go: It changes what CI runs), unviewed (you have opened no file of revision 1). Look at each",
		"Fine &lt;so&gt;.</textarea>", `name="tick" value="bidi" checked required`, `name="tick" value="ci_file" required`, unviewed)
	form["revision"] = []string{"2"}
	has(t, page.post(address+"/decision", form), http.StatusConflict, "you have read something else")
	yes := fmt.Sprintf(`{"verdict":"approve","digest":%q,"revision":1,"ticked":`, r.Revision.Digest)
	token := h.token(bob)
	h.expect(http.StatusConflict, "not_ticked", "POST", v1+address+"/decision", token, fmt.Sprintf(`{"verdict":"approve","digest":%q}`, r.Revision.Digest))
	h.expect(http.StatusConflict, "not_ticked", "POST", v1+address+"/decision", token, yes+`["ci_file"]}`)
	h.expect(http.StatusBadRequest, "bad_request", "POST", v1+address+"/decision", token, strings.Replace(yes, `"revision":1`, `"revision":-1`, 1)+`["ci_file","bidi"]}`)
	h.expect(http.StatusConflict, "superseded", "POST", v1+address+"/decision", token, strings.Replace(yes, `"revision":1`, `"revision":2`, 1)+`["ci_file","bidi"]}`)
	h.expect(http.StatusOK, "", "POST", v1+address+"/decision", token, yes+`["bidi","ci_file","unviewed","x"]}`)
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if seen := got.Decisions[0].Seen; seen.Surface != "api" || seen.Files != 1 || strings.Join(seen.WarningsTicked, " ") != "ci_file bidi" {
		t.Errorf("seen: %+v", seen)
	}
}

// Who scrolls through the diff and approves meets no further question; who approves at
// once is asked on the sheet, which goes away as soon as a file was before them.
func TestScrollingThroughTheDiffIsReading(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	r := h.request(dora)
	p := h.seat(browsertest.New(t), bob)
	p.Open(h.url + "/approvals/" + r.ID)
	p.Wait("button", "Approve")
	p.Until(`!document.querySelector('#verdict [data-unviewed]')`)
	p.Click("button", "Approve")
	p.WaitText("Your approval was counted.")
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if seen := got.Decisions[0].Seen; seen.FilesOpened != 1 || seen.FilesViewed != 0 || len(seen.WarningsTicked) != 0 || got.HowRead() != "read on the web by bob: 1 of 1 file" {
		t.Errorf("seen: %+v", seen)
	}
	// On a phone one file is shown at a time; the others were not opened.
	many := h.request(dora, func(r *approval.Request) {
		for range 3 {
			r.Revision.Files = append(r.Revision.Files, patch.File{Path: "retry.go", Status: patch.Modified, Added: 1, Removed: 1, OldMode: "100644", NewMode: "100644"})
		}
	})
	phone := h.seat(browsertest.New(t), bob).Phone()
	phone.Open(h.url + "/approvals/" + many.ID)
	phone.Until(`!document.querySelector('#verdict [data-unviewed]')`)
	read, err := h.gate.Reading(h.ctx, people.Principal{User: userOf(h, "bob")}, many.ID, 1)
	h.must(err)
	if fmt.Sprint(read.Opened) != "[1]" {
		t.Errorf("opened on the phone: %v", read.Opened)
	}
}
