package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// What a decision says of how it was read comes from the server: neither the time of
// opening nor the number of files can be claimed by a form (the auditor's question "within
// 10 s of opening" rests on it).
func TestADecisionTellsWhatTheServerSawOfTheReading(t *testing.T) {
	h, address, r, ann, bob := asked(t)
	before := time.Now().Add(-time.Second)
	has(t, ann.get(address+"?part=head"), 200)
	if got, err := h.gate.Reading(h.ctx, people.Principal{User: userOf(h, "ann")}, r.ID, 1); err != nil || !got.OpenedAt.IsZero() {
		t.Errorf("a live part opened the page: %+v %v", got, err)
	}
	has(t, ann.get(address), 200, `<span data-viewed-n>0</span> of 3 viewed`)
	mark := url.Values{"revision": {"1"}, "file": {"2"}, "viewed": {"1"}, "back": {"view=split&next=//evil"}}
	marked := ann.post(address+"/viewed", mark)
	has(t, marked, 200, `<span data-viewed-n>1</span> of 3 viewed`, `aria-pressed="true"`)
	if at := marked.Request.URL; at.RawQuery != "view=split" || at.Fragment != "F2" {
		t.Errorf("led to %s", at)
	}
	if strings.Contains(bob.get(address).body, `aria-pressed="true" aria-label="viewed`) {
		t.Error("bob has ann's marks")
	}
	for _, bad := range []url.Values{{"revision": {"1"}, "file": {"4"}, "viewed": {"1"}}, {"revision": {"1"}, "file": {"-1"}, "viewed": {"1"}}, {"revision": {"7"}, "file": {"1"}, "viewed": {"1"}}, {}} {
		has(t, ann.post(address+"/viewed", bad), http.StatusBadRequest)
	}
	mark.Set("file", "1")
	ann.post(address+"/viewed", mark)
	mark.Del("viewed")
	has(t, ann.post(address+"/viewed", mark), 200, `<span data-viewed-n>1</span> of 3 viewed`)
	has(t, ann.post(address+"/decision", url.Values{"verdict": {"approve"}, "digest": {r.Revision.Digest}, "files": {"900"}, "files_viewed": {"900"}, "opened_at": {"2000-01-01T00:00:00Z"}, "tick": {"bidi"}}), 200)
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	seen := got.Decisions[0].Seen // bidi was not asked for
	if seen.Surface != approval.SurfacePage || seen.Files != 3 || seen.FilesViewed != 1 || seen.FilesOpened != 1 || len(seen.WarningsTicked) != 0 {
		t.Errorf("seen: %+v", seen)
	}
	if seen.OpenedAt == nil || seen.OpenedAt.Before(before) || seen.OpenedAt.After(got.Decisions[0].At) {
		t.Errorf("opened at %v, decided at %v", seen.OpenedAt, got.Decisions[0].At)
	}
}

// A verdict over the API has no page before it, whatever it says.
func TestAVerdictWithoutAPageHasNoTimeOfOpening(t *testing.T) {
	h, address, r, ann, _ := asked(t)
	has(t, ann.get(address), 200)
	h.expect(http.StatusOK, "", "POST", v1+address+"/decision", h.token(userOf(h, "ann")), `{"verdict":"reject","digest":"`+r.Revision.Digest+`","comment":"no"}`)
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if seen := got.Decisions[0].Seen; seen.OpenedAt != nil || seen.FilesViewed != 0 {
		t.Errorf("seen: %+v", seen)
	}
}

func userOf(h *house, name string) people.User {
	h.Helper()
	u, err := h.store.UserByName(h.ctx, name)
	h.must(err)
	return u
}

// A picture from an agent is a picture or nothing, and can run nothing.
func TestPicturesOfAChangeAreSafe(t *testing.T) {
	h := open(t)
	picture := func(path, old, now string) patch.File {
		return patch.File{Path: path, Status: patch.Modified, Binary: true, OldBlob: old, NewBlob: now, OldSize: 10, NewSize: 10, OldMode: "100644", NewMode: "100644"}
	}
	r := h.request(h.user("dora", people.Operator), func(r *approval.Request) {
		r.Revision.Files = []patch.File{picture("logo.png", "", pngBlob), picture("page.png", pngBlob, htmlBlob), picture("page.svg", pngBlob, pngBlob), picture("a.html", pngBlob, pngBlob)}
	})
	ann := h.signIn(h.user("ann", people.Approver))
	address := "/approvals/" + r.ID
	has(t, ann.get(address), 200, "not there", address+"/picture?rev=1&amp;file=1&amp;side=R", "The picture after the change")
	good := ann.get(address + "/picture?rev=1&file=1&side=R")
	has(t, good, 200, "PNG")
	for name, want := range map[string]string{"Content-Type": "image/png", "Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
		if got := good.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, query := range []string{"file=2&side=R", "file=3&side=R", "file=4&side=R", "file=1&side=L", "file=9", "file=x", ""} {
		has(t, ann.get(address+"/picture?"+query), http.StatusNotFound)
	}
	has(t, ann.get(address+"/picture?rev=9&file=1"), http.StatusNotFound)
}

// An address that names lines leads to the page that has them; nonsense leads nowhere worse
// than the request.
func TestALinkToALineFindsItsPage(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator), func(r *approval.Request) {
		for range 40 {
			r.Revision.Files = append(r.Revision.Files, patch.File{Path: "x.go", Status: patch.Modified, Added: 60, Removed: 40})
		}
	})
	ann := h.signIn(h.user("ann", people.Approver))
	ann.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for at, want := range map[string]string{
		"F30R1": "?page=6#F30R1", "F1L1": "?page=1#F1L1", "F30R1-R9": "?page=6#F30R1-R9", "F99R1": "", "F0R1": "", "nonsense": "", "F1X1": "", "F1R99999999999": "",
	} {
		a := ann.get("/approvals/" + r.ID + "?at=" + at)
		if got, full := a.Header.Get("Location"), "/approvals/"+r.ID+want; a.StatusCode != http.StatusSeeOther || got != full {
			t.Errorf("%s: %d %s, want %s", at, a.StatusCode, got, full)
		}
	}
}

// One file of the page alone, for what expands in place.
func TestOneFileIsDrawnAlone(t *testing.T) {
	_, address, _, ann, _ := asked(t)
	a := ann.get(address + "?part=F2&rev=1")
	has(t, a, 200, `id="F2"`, "site.css")
	for _, not := range []string{"retry.go", "<html", `id="review-bar"`} {
		if strings.Contains(a.body, not) {
			t.Errorf("it has %s", not)
		}
	}
	has(t, ann.get(address+"?open=1:1-99999999;x;2:9-1;;3:0-0&part=F77"), 200, "retry.go")
}
