package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// The main job with forms alone: sign in by link, send a task, read a diff, say yes.
func TestAPersonWithoutJavaScriptSendsAndDecides(t *testing.T) {
	h := open(t)
	dora, ann := h.user("dora", people.Operator), h.user("ann", people.Approver)
	b := h.signIn(dora)
	if a := b.get("/"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "No tasks yet") {
		t.Fatalf("overview: %d", a.StatusCode)
	}
	a := b.post("/tasks", url.Values{"agent": {"kik"}, "text": {"Fix the <b>loop</b>"}, "repository": {"app"}, "key": {"once"}})
	if a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Request.URL.Path, "/delegations/tsk_") || !strings.Contains(a.body, "Fix the &lt;b&gt;loop&lt;/b&gt;") {
		t.Fatalf("after sending: %d %s", a.StatusCode, a.Request.URL)
	}
	if again := b.post("/delegations", url.Values{"agent": {"kik"}, "text": {"Fix the <b>loop</b>"}, "repository": {"app"}, "key": {"once"}}); again.Request.URL.Path != a.Request.URL.Path {
		t.Errorf("a double click made another task: %s", again.Request.URL)
	}
	r := h.request(dora)
	v := h.signIn(ann)
	page := v.get("/approvals/" + r.ID)
	for _, want := range []string{`name="digest" value="` + digest, ">Approve<", ">Reject<", ">Request changes<", "retry.go"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the review page lacks %s", want)
		}
	}
	if strings.Contains(page.body, "<script>alert") {
		t.Error("a line of the diff is HTML")
	}
	// Without script nobody knows that a file was scrolled through, so the yes says it.
	yes := url.Values{"verdict": {"approve"}, "digest": {digest}, "revision": {"1"}, "comment": {"fine"}}
	has(t, v.post("/approvals/"+r.ID+"/decision", yes), http.StatusConflict, "unviewed (you have opened no file of revision 1)", `name="tick" value="unviewed"`, ">fine</textarea>")
	yes.Set("tick", "unviewed")
	done := v.post("/approvals/"+r.ID+"/decision", yes)
	if done.StatusCode != http.StatusOK || !strings.Contains(done.body, "Your approval was counted.") {
		t.Fatalf("after the yes: %d %s", done.StatusCode, done.Request.URL)
	}
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if got.State != approval.Approved || got.Decisions[0].Channel != "web" || got.Decisions[0].Comment != "fine" {
		t.Errorf("stored: %s %+v", got.State, got.Decisions)
	}
	late := v.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"reject"}, "digest": {digest}, "comment": {"no"}})
	if late.StatusCode != http.StatusConflict {
		t.Errorf("a late verdict got %d", late.StatusCode)
	}
}

func TestARefusedVerdictKeepsWhatWasTyped(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator))
	b := h.signIn(h.user("ann", people.Approver))
	a := b.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"reject"}, "digest": {"00000000" + digest[8:]}, "comment": {"Breaks resume."}})
	if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "Breaks resume.") {
		t.Errorf("%d, and the comment is gone", a.StatusCode)
	}
}

func TestARefusedTaskKeepsItsText(t *testing.T) {
	h := open(t)
	b := h.signIn(h.user("dora", people.Operator))
	a := b.post("/tasks", url.Values{"agent": {"nobody"}, "text": {"Keep me"}})
	if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "Keep me") {
		t.Errorf("%d, and the text is gone", a.StatusCode)
	}
}

func TestPagesAreStrictAboutWhatTheyLoad(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Approver)
	task, _ := h.task(ann, "Fix")
	r := h.request(ann)
	b := h.signIn(ann)
	inline := regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|\son[a-z]+="|\sstyle="|<style|javascript:|(?:src|href)="(?:https?:)?//`)
	for _, path := range []string{"/", "/approvals", "/approvals?state=all", "/approvals/" + r.ID, "/approvals/" + r.ID + "?view=split&ctx=20", "/delegations",
		"/delegations/" + task.ID, "/delegations/" + task.ID + "?tab=events", "/delegations/" + task.ID + "?tab=timeline", "/delegations?q=Fix&state=queued",
		"/chat", "/agents", "/agents?from=kik&to=coder", "/agents/kik", "/login", "/nothing", v1 + "/approvals/" + r.ID + "/evidence"} {
		a := b.get(path)
		if a.StatusCode != http.StatusOK && path != "/nothing" {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		policy := a.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if strings.Contains(policy, "unsafe") || a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", path, a.Header)
		}
		if found := inline.FindString(a.body); found != "" {
			t.Errorf("%s has inline code or foreign files: %q", path, found)
		}
	}
}

// Fetching a link uses nothing, because previews and scanners fetch; the button does, once.
func TestASignInLinkWorksOnceAndOnlyByItsButton(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Approver)
	code, hash := signin.NewLinkCode()
	h.must(h.store.CreateSigninLink(h.ctx, "test", people.SigninLink{Hash: hash, UserID: ann.ID, ExpiresAt: h.soon()}))
	for range 3 {
		a := h.ask("GET", "/login/link?code="+code, "", "")
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Sign in") || a.Header.Get("Set-Cookie") != "" {
			t.Fatalf("fetching it: %d", a.StatusCode)
		}
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	body := url.Values{"code": {code}, "next": {"/approvals"}}.Encode()
	a := h.ask("POST", "/login/link", "", body, form)
	cookie := a.Header.Get("Set-Cookie")
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/approvals" || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
		t.Fatalf("the button: %d %v", a.StatusCode, a.Header)
	}
	if again := h.ask("POST", "/login/link", "", body, form); again.StatusCode != http.StatusUnauthorized || again.Header.Get("Set-Cookie") != "" {
		t.Errorf("the second use: %d", again.StatusCode)
	}
}

func TestAPasswordSignsInAndGuessingIsStopped(t *testing.T) {
	h := open(t)
	hash, err := signin.HashPassword("correct horse battery")
	h.must(err)
	_, err = h.store.CreateUser(h.ctx, "test", people.User{Name: "ann", Roles: []people.Role{people.Approver}, PasswordHash: hash})
	h.must(err)
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	try := func(name, password, next string) answer {
		return h.ask("POST", "/login", "", url.Values{"name": {name}, "password": {password}, "next": {next}}.Encode(), form)
	}
	if a := try("Ann", "correct horse battery", "/delegations?state=failed"); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/delegations?state=failed" {
		t.Fatalf("%d %s", a.StatusCode, a.Header.Get("Location"))
	}
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "/\t/evil.example", "javascript:alert(1)", "evil", `\\evil`, "/logout"} {
		if a := try("ann", "correct horse battery", next); a.Header.Get("Location") != "/" {
			t.Errorf("next=%q leads to %q", next, a.Header.Get("Location"))
		}
	}
	known, unknown := try("ann", "wrong wrong", "/"), try("nobody", "wrong wrong", "/")
	if known.StatusCode != http.StatusUnauthorized || unknown.StatusCode != http.StatusUnauthorized {
		t.Errorf("wrong password %d, unknown name %d", known.StatusCode, unknown.StatusCode)
	}
	for range 12 {
		known = try("ann", "wrong wrong", "/")
	}
	if known.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after many tries: %d", known.StatusCode)
	}
}

func TestSignedOutBrowsersAreLedToSignInAndBack(t *testing.T) {
	h := open(t)
	a := h.ask("GET", "/approvals?state=all", "", "")
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/login?next=%2Fapprovals%3Fstate%3Dall" {
		t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
	}
	if a := h.ask("GET", "/login", "", ""); a.StatusCode != http.StatusOK {
		t.Errorf("/login: %d", a.StatusCode)
	}
	b := h.signIn(h.user("ann", people.Approver))
	if out := b.post("/logout", nil); out.Request.URL.Path != "/login" {
		t.Errorf("after signing out: %s", out.Request.URL)
	}
	if again := b.get("/"); again.Request.URL.Path != "/login" {
		t.Errorf("the session lives on: %s", again.Request.URL)
	}
}

// A large change is cut into pages; the list of files stays complete.
func TestALargeChangeIsPaged(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator), func(r *approval.Request) {
		r.Revision.Files = nil
		for i := range 40 {
			r.Revision.Files = append(r.Revision.Files, patch.File{Path: "dir/file" + string(rune('A'+i)) + ".go", Status: patch.Modified, Added: 60, Removed: 40})
		}
		r.Revision.Added, r.Revision.Removed = 2400, 1600
	})
	b := h.signIn(h.user("ann", people.Approver))
	first, last := b.get("/approvals/"+r.ID), b.get("/approvals/"+r.ID+"?page=8")
	if !strings.Contains(first.body, "Page 1 of 8") || !strings.Contains(last.body, "Page 8 of 8") {
		t.Error("the pages are not announced")
	}
	for i := range 40 {
		if name := "file" + string(rune('A'+i)) + ".go"; i < 26 && !strings.Contains(first.body, name) {
			t.Errorf("%s is not in the list of page 1", name)
		}
	}
	if a := b.get("/approvals/" + r.ID + "?page=9"); a.StatusCode != http.StatusNotFound {
		t.Errorf("page 9 of 8: %d", a.StatusCode)
	}
}

func TestASearchForAnIdLeadsToIt(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	task, _ := h.task(dora, "Fix")
	b := h.signIn(dora)
	if a := b.get("/delegations?q=" + task.ID[len(task.ID)-8:]); a.Request.URL.Path != "/delegations/"+task.ID {
		t.Errorf("led to %s", a.Request.URL)
	}
	if a := b.get("/delegations?q=wordthatisnone"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "No task matches") {
		t.Errorf("%d", a.StatusCode)
	}
}
