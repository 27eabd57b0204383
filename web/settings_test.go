package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// says holds a page to a status and to words that it has or, after "!", lacks.
func (h *house) says(a answer, status int, words ...string) {
	h.Helper()
	if a.StatusCode != status {
		h.Fatalf("%s: %d, want %d: %.2000s", a.Request.URL, a.StatusCode, status, a.body)
	}
	for _, w := range words {
		if bare, not := strings.CutPrefix(w, "!"); strings.Contains(a.body, bare) == not {
			_, main, _ := strings.Cut(a.body, "<main")
			h.Errorf("%s: about %q: %.4000s", a.Request.URL, w, main)
		}
	}
}

// system lists what the stream of acts outside of tasks says, as "type actor".
func (h *house) system() (lines []string) {
	h.Helper()
	events, err := h.store.Events(h.ctx, event.System, 0, 1000)
	h.must(err)
	for _, e := range events {
		lines = append(lines, string(e.Type)+" "+e.Actor)
	}
	return lines
}

func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// An admin adds a person, who signs in by the link, gets other roles, is kept out at once
// and let in again; each step is an event under the admin's name.
func TestAnAdminKeepsPeopleWithFormsAlone(t *testing.T) {
	h := open(t)
	finn := h.user("finn", people.Admin)
	admin := h.signIn(finn)
	h.says(admin.post("/settings/people", form("name", "ann b", "role", "operator")), http.StatusBadRequest, "use letters, digits", `value="ann b"`)
	h.says(admin.post("/settings/people", form("name", "dora")), http.StatusBadRequest, "without a role", `value="dora"`)
	h.says(admin.post("/settings/people", form("name", "dora", "role", "boss")), http.StatusBadRequest, "There is no role")
	h.says(admin.post("/settings/people", form("name", "dora", "role", "operator")), http.StatusOK, "The person was added", "Make a sign-in link")
	h.says(admin.post("/settings/people", form("name", "DORA", "role", "operator")), http.StatusConflict, "There is a person of that name already")

	page := admin.post("/settings/people/dora", form("do", "link"))
	code := regexp.MustCompile(`/login/link\?code=([0-9A-Za-z_-]+)`).FindStringSubmatch(page.body)
	if code == nil || page.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("no link: %.3000s", page.body)
	}
	h.says(admin.get("/settings/people/dora"), http.StatusOK, "!"+code[1])
	dora := h.browserOf(code[1])
	h.says(dora.get("/settings"), http.StatusOK, "this browser", "!/settings/people", "sends, stops and retries tasks")
	h.says(dora.get("/settings/people"), http.StatusForbidden)

	h.says(admin.post("/settings/people/dora", form("do", "roles", "role", "approver", "role", "auditor")), http.StatusOK, "The roles were changed")
	h.says(dora.get("/settings/you"), http.StatusOK, "reads requests and decides them", "!sends, stops and retries")
	h.says(admin.post("/settings/people/dora", form("do", "disable")), http.StatusOK, "Nobody gets in under that name", "Let dora in again")
	if a := dora.get("/settings/you"); a.Request.URL.Path != "/login" {
		t.Errorf("a disabled person is at %s", a.Request.URL)
	}
	h.says(admin.post("/settings/people/dora", form("do", "link")), http.StatusConflict, "is disabled and cannot sign in")
	h.says(admin.post("/settings/people/dora", form("do", "enable")), http.StatusOK, "may sign in again")
	h.says(admin.post("/settings/people/nobody", form("do", "disable")), http.StatusNotFound, "no person of that name")
	h.says(admin.post("/settings/people/dora", form("do", "promote")), http.StatusBadRequest, "does not say what to do")
	want := []string{"user.created finn", "signin_link.created finn", "user.changed finn", "user.changed finn", "user.changed finn"}
	got := slices.DeleteFunc(h.system(), func(l string) bool {
		return !strings.HasSuffix(l, " finn") || strings.HasPrefix(l, "session") || strings.Contains(l, "used")
	})
	if !slices.Equal(got, want) {
		t.Errorf("the log says %q, want %q", got, want)
	}
}

// browserOf is a browser that used a sign-in link.
func (h *house) browserOf(code string) *browser {
	h.Helper()
	b := h.stranger()
	h.says(b.post("/login/link", form("code", code)), http.StatusOK)
	return b
}

func TestTheLastAdminStays(t *testing.T) {
	h := open(t)
	admin := h.signIn(h.user("finn", people.Admin))
	h.says(admin.post("/settings/people/finn", form("do", "disable")), http.StatusConflict, "Nobody disables themselves")
	h.says(admin.post("/settings/people/finn", form("do", "roles", "role", "auditor")), http.StatusConflict, "cannot take the role admin from yourself")
	gwen := h.signIn(h.user("gwen", people.Admin))
	h.says(gwen.post("/settings/people/finn", form("do", "disable")), http.StatusOK)
	h.says(gwen.get("/settings/people/gwen"), http.StatusOK, "Ask another admin.", "!value=\"disable\"")
}

func TestSomebodyIsAwayAndBack(t *testing.T) {
	h := open(t)
	admin := h.signIn(h.user("finn", people.Admin, people.Approver))
	h.user("ann", people.Approver)
	h.says(admin.post("/settings/people/ann", form("do", "away", "to", "finn", "until", "soon")), http.StatusBadRequest, "The end was not understood", `value="soon"`)
	h.says(admin.post("/settings/people/ann", form("do", "away", "to", "ann", "until", "2d")), http.StatusBadRequest, "stands in for themselves")
	h.says(admin.post("/settings/people/ann", form("do", "away", "to", "zoe", "until", "2d")), http.StatusBadRequest, "no person of that name")
	h.says(admin.post("/settings/people/ann", form("do", "away", "to", "finn", "until", "2000-01-01")), http.StatusBadRequest)
	h.says(admin.post("/settings/people/ann", form("do", "away", "to", "finn", "until", "2d")), http.StatusOK, "ann is away until", "finn decides")
	h.says(admin.get("/settings/people"), http.StatusOK, "finn decides")
	h.says(admin.post("/settings/people/ann", form("do", "back")), http.StatusOK, "The absence has ended", "!finn decides")
}

// A token is shown once, has no right that its maker lacks, and ends when it is revoked.
func TestATokenIsMadeShownOnceAndRevoked(t *testing.T) {
	h := open(t)
	dora, ann := h.signIn(h.user("dora", people.Operator)), h.signIn(h.user("ann", people.Approver))
	h.says(dora.get("/settings/tokens"), http.StatusOK, "There are no tokens", "tasks:write", "!approvals:decide")
	h.says(dora.post("/settings/tokens", form("name", "ci", "life", "90d")), http.StatusBadRequest, "Tick what it may do", `value="ci"`)
	h.says(dora.post("/settings/tokens", form("scope", "approvals:decide", "life", "90d")), http.StatusBadRequest, "You have no right to approvals:decide")
	h.says(dora.post("/settings/tokens", form("scope", "everything", "life", "90d")), http.StatusBadRequest, "There is no scope")
	h.says(dora.post("/settings/tokens", form("scope", "tasks:write", "life", "soon")), http.StatusBadRequest, "Choose one of the list")
	h.says(dora.post("/settings/tokens", form("scope", "tasks:write", "life", "90d", "name", strings.Repeat("ü", 81))), http.StatusBadRequest, "more than 80 characters")
	page := dora.post("/settings/tokens", form("scope", "delegations:read", "life", "90d", "name", "<b>ci\u202e"))
	h.says(page, http.StatusOK, "never again", "&lt;b&gt;ci", "U+202E", "!<b>ci")
	secret := regexp.MustCompile(`secret-line"><code>([^<]+)</code>`).FindStringSubmatch(page.body)
	if secret == nil {
		t.Fatalf("no token in %.3000s", page.body)
	}
	h.expect(http.StatusOK, "", "GET", v1+"/agents", secret[1], "")
	h.expect(http.StatusForbidden, "forbidden", "POST", v1+"/tasks", secret[1], `{"agent":"kik","text":"x"}`)
	list := dora.get("/settings/tokens")
	h.says(list, http.StatusOK, "Revoke this token", "!"+secret[1])
	id := regexp.MustCompile(`name="token" value="(tok_[^"]+)"`).FindStringSubmatch(list.body)[1]
	h.says(ann.get("/settings/tokens"), http.StatusOK, "!"+id)
	h.says(ann.post("/settings/tokens/revoke", form("token", id)), http.StatusNotFound)
	finn := h.signIn(h.user("finn", people.Admin))
	h.says(finn.get("/settings/tokens"), http.StatusOK, id, "dora")
	h.says(finn.post("/settings/tokens/revoke", form("token", id, "back", "/settings/people/dora")), http.StatusOK, "The token was revoked", "Who it is")
	h.expect(http.StatusUnauthorized, "unauthorized", "GET", v1+"/agents", secret[1], "")
}

// A key with few rights must not make itself one with more, nor a session, nor a password.
func TestNoTokenMakesKeys(t *testing.T) {
	h := open(t)
	finn := h.user("finn", people.Admin)
	token := h.token(finn)
	post := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	for path, body := range map[string]url.Values{
		"/settings/tokens":       form("scope", "admin", "life", "never"),
		"/settings/people":       form("name", "eve", "role", "admin"),
		"/settings/people/finn":  form("do", "link"),
		"/settings/you/password": form("new", "correct horse", "again", "correct horse"),
		"/settings/you/sessions": form(),
		"/settings/you/zone":     form("zone", "UTC"),
	} {
		a := h.ask("POST", path, token, body.Encode(), post)
		if a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "No token allows this") {
			t.Errorf("%s: %d %.300s", path, a.StatusCode, a.body)
		}
	}
}

func TestAPersonChangesThePasswordAndSignsOutElsewhere(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	here, there := h.signIn(dora), h.signIn(dora)
	h.says(here.post("/settings/you/password", form("new", "correct horse", "again", "correct house")), http.StatusBadRequest, "The two new passwords differ")
	h.says(here.post("/settings/you/password", form("new", "short", "again", "short")), http.StatusBadRequest, "8 characters or more")
	h.says(here.post("/settings/you/password", form("new", "correct horse", "again", "correct horse")), http.StatusOK, "Your password was changed", "Current password")
	if a := there.get("/settings/you"); a.Request.URL.Path != "/login" {
		t.Error("the other browser is still signed in")
	}
	h.says(here.post("/settings/you/password", form("old", "wrong horse", "new", "battery staple", "again", "battery staple")), http.StatusBadRequest, "The current password is not that one")
	h.says(here.post("/settings/you/password", form("old", "correct horse", "new", "battery staple", "again", "battery staple")), http.StatusOK, "Your password was changed")
	third := h.stranger()
	h.says(third.post("/login", form("name", "dora", "password", "battery staple")), http.StatusOK)
	h.says(here.get("/settings/you"), http.StatusOK, "Sign out everywhere else")
	h.says(here.post("/settings/you/sessions", nil), http.StatusOK, "signed out everywhere else", "!Sign out everywhere else")
	if a := third.get("/"); a.Request.URL.Path != "/login" {
		t.Error("the third browser is still signed in")
	}
}

func TestTheTimeZoneIsChosen(t *testing.T) {
	h := open(t)
	b := h.signIn(h.user("dora", people.Operator))
	for _, bad := range []string{"Mars/Base", "Local", "../etc/passwd", strings.Repeat("a", 100)} {
		h.says(b.post("/settings/you/zone", form("zone", bad)), http.StatusBadRequest, "There is no such time zone", `data-zone=""`)
	}
	h.says(b.post("/settings/you/zone", form("zone", "Europe/Berlin")), http.StatusOK, `data-zone="Europe/Berlin"`)
	h.says(b.post("/settings/you/zone", form("zone", "")), http.StatusOK, `data-zone=""`)
}

func TestASessionIsKnownByItsBrowser(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	b := h.signIn(dora)
	for i, client := range []string{"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "<script>\u202e", strings.Repeat("x", 5000)} {
		h.must(h.store.CreateSession(h.ctx, "dora", people.Session{Hash: "h" + string(rune('0'+i)), UserID: dora.ID, Client: client, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}))
	}
	h.says(b.get("/settings/you"), http.StatusOK, "Firefox on Linux", "&lt;script&gt;", "U+202E", "!<script>\u202e", strings.Repeat("x", 59)+"…")
}
