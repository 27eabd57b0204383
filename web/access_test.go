package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/web"
)

// Every route of the server against every role, run tokens and strangers: what the
// table promises is what happens, and nothing is open by accident.
func TestEveryRouteAgainstEveryRole(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	_, root := h.task(dora, "Fix")
	run := "ghr_run"
	h.running(root, run)
	tokens := map[string]string{"run": run}
	scopes := map[string][]string{"run": {"run", "delegations:read", "context:read", "context:write"}}
	for _, role := range people.Roles() {
		tokens[string(role)] = h.token(h.user("the-"+string(role), role))
		scopes[string(role)] = []string{"signed in"}
		for _, s := range role.Scopes() {
			scopes[string(role)] = append(scopes[string(role)], string(s))
		}
	}
	for _, r := range h.web.Table() {
		path := strings.NewReplacer(":id", "dlg_00000000000000000000000000", ":ns", "ns", ":key", "k", ":name", "nobody", "*", "app.css").Replace(r.Path)
		if strings.HasPrefix(path, "/approvals/dlg_") || strings.Contains(path, "/approvals/dlg_") {
			path = strings.Replace(path, "dlg_", "apr_", 1)
		}
		body := ""
		if r.Method == "POST" || r.Method == "PUT" {
			body = `{"nothing":1}`
		}
		open := slices.Contains(r.Rights, "anyone")
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			stranger := h.ask(r.Method, path, "", body)
			toLogin := stranger.StatusCode == http.StatusSeeOther && strings.HasPrefix(stranger.Header.Get("Location"), "/login")
			if refused := stranger.StatusCode == http.StatusUnauthorized || toLogin; refused == open && r.Path != "/hooks/:name" && r.Path != "/logout" && r.Path != "/login" && r.Path != "/login/link" {
				t.Errorf("a stranger got %d", stranger.StatusCode)
			}
			if open {
				return
			}
			for who, token := range tokens {
				a := h.ask(r.Method, path, token, body, func(req *http.Request) { req.Header.Set("Accept", "application/json") })
				may := slices.ContainsFunc(r.Rights, func(right string) bool { return slices.Contains(scopes[who], right) })
				if who == "run" && !answersRuns(r.Path) {
					may = false
				}
				forbidden := a.StatusCode == http.StatusForbidden && !strings.Contains(a.body, "A run sees its own task only") && !strings.Contains(a.body, "This run is over") && !strings.Contains(a.body, "Reverting needs")
				if forbidden == may || a.StatusCode == http.StatusUnauthorized || a.StatusCode >= http.StatusInternalServerError {
					t.Errorf("%s (may: %v) got %d %.200s", who, may, a.StatusCode, a.body)
				}
			}
		})
	}
}

// Pages list all tasks, so an agent's token must not open any of them.
func TestARunTokenOpensNoPage(t *testing.T) {
	h := open(t)
	_, root := h.task(h.user("dora", people.Operator), "Fix")
	h.task(h.user("ann", people.Operator), "Somebody else's secret")
	h.running(root, "ghr_run")
	for _, path := range []string{"/", "/delegations", "/delegations/" + root.ID, "/agents", "/approvals"} {
		a := h.expect(http.StatusForbidden, "", "GET", path, "ghr_run", "")
		if strings.Contains(a.body, "secret") {
			t.Errorf("%s shows another task to a run", path)
		}
	}
	h.expect(http.StatusOK, "", "GET", v1+"/delegations/"+root.ID, "ghr_run", "")
}

// The list of agents says how each fared last, which is other tasks' business.
func TestARunReadsNoOtherTasksFailures(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	_, root := h.task(dora, "Fix")
	_, other := h.task(h.user("ann", people.Operator), "Other")
	h.must(h.store.InTask(h.ctx, other.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(h.ctx, other.ID)
		if err != nil {
			return err
		}
		return orchestrator.Fail(h.ctx, tx, d, agent.Fail(agent.CodeExit, "a secret failure"))
	}))
	h.running(root, "ghr_run")
	if a := h.expect(http.StatusOK, "", "GET", v1+"/agents", h.token(dora), ""); !strings.Contains(a.body, "secret failure") {
		t.Errorf("a person reads %s", a.body)
	}
	if a := h.expect(http.StatusOK, "", "GET", v1+"/agents", "ghr_run", ""); strings.Contains(a.body, "secret failure") {
		t.Errorf("a run reads %s", a.body)
	}
}

// answersRuns is the list of addresses that hold a run to its own task.
func answersRuns(path string) bool {
	return strings.HasPrefix(path, v1+"/") || path == "/ws" || path == "/delegation-status" || path == "/delegation-stream"
}

func TestATokenNeverExceedsItsScopes(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor)
	for _, s := range people.Scopes() {
		token := h.token(ann, s)
		a := h.ask("GET", v1+"/delegations", token, "")
		if want := s == people.DelegationsRead; (a.StatusCode == http.StatusOK) != want {
			t.Errorf("a token with %s alone got %d for the list of delegations", s, a.StatusCode)
		}
	}
}

func TestARevokedTokenIsRefused(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Auditor)
	token := h.token(ann)
	all, err := h.store.Tokens(h.ctx, ann.ID)
	h.must(err)
	h.expect(http.StatusOK, "", "GET", v1+"/delegations", token, "")
	h.must(h.store.RevokeToken(h.ctx, "test", all[0].ID))
	a := h.expect(http.StatusUnauthorized, "unauthorized", "GET", v1+"/delegations", token, "")
	if !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer") {
		t.Errorf("no challenge: %v", a.Header)
	}
}

// DNS rebinding: a page of another site whose name points here.
func TestOnlyOurOwnNamesAreAnswered(t *testing.T) {
	h := open(t)
	token := h.token(h.user("ann", people.Auditor))
	for host, ok := range map[string]bool{"localhost": true, "localhost:9999": true, "127.0.0.1:1": true, "[::1]:8080": true, "LOCALHOST:8080": true,
		"evil.example": false, "evil.example:8080": false, "127.0.0.1.evil.example": false, "localhost.evil.example": false, "10.0.0.1": false} {
		for _, path := range []string{"/healthz", v1 + "/delegations", v1 + "/events", "/ws", "/login", "/static/app.css"} {
			a := h.ask("GET", path, token, "", func(r *http.Request) { r.Host = host })
			if refused := a.StatusCode == http.StatusForbidden && strings.Contains(a.body, "not asked under that name"); refused == ok {
				t.Errorf("Host %s, %s: %d", host, path, a.StatusCode)
			}
		}
	}
}

func TestAnotherSiteChangesNothing(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	b := h.signIn(dora)
	for name, change := range map[string]func(*http.Request){
		"origin":         func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"null origin":    func(r *http.Request) { r.Header.Set("Origin", "null") },
		"fetch metadata": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a sibling":      func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest("POST", h.url+"/tasks", strings.NewReader("agent=kik&text=evil"))
			h.must(err)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			change(req)
			if a := h.do(b.client, req); a.StatusCode != http.StatusForbidden {
				t.Errorf("got %d", a.StatusCode)
			}
		})
	}
	for _, path := range []string{v1 + "/events", "/delegation-stream?id=tsk_x"} {
		req, err := http.NewRequest("GET", h.url+path, nil)
		h.must(err)
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Origin", "https://evil.example")
		if a := h.do(b.client, req); a.StatusCode < 400 {
			t.Errorf("%s answered another site with %d", path, a.StatusCode)
		}
	}
}

func TestAStrangersPublicAddressNeedsPeople(t *testing.T) {
	for _, c := range []struct {
		listen string
		users  int
		ok     bool
	}{{"127.0.0.1:8080", 0, true}, {"localhost:0", 0, true}, {"[::1]:8080", 0, true}, {":8080", 0, false}, {"0.0.0.0:8080", 0, false},
		{"10.1.2.3:80", 0, false}, {"0.0.0.0:8080", 1, true}, {"127.0.0.1.evil.example:80", 0, false}} {
		t.Run(fmt.Sprintf("%s with %d", c.listen, c.users), func(t *testing.T) {
			if err := web.MayListen(c.listen, c.users); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestErrorsAreProblemDocumentsForPrograms(t *testing.T) {
	h := open(t)
	a := h.expect(http.StatusNotFound, "not_found", "GET", "/api/v1/nothing", "", "")
	for _, key := range []string{"type", "title", "status", "detail", "code", "instance"} {
		if a.json(t)[key] == nil {
			t.Errorf("%s is missing in %s", key, a.body)
		}
	}
	h.expect(http.StatusMethodNotAllowed, "method_not_allowed", "PATCH", "/api/v1/tasks", "", "")
	page := h.ask("GET", "/nothing", "", "")
	if page.StatusCode != http.StatusNotFound || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Errorf("a browser got %d %s", page.StatusCode, page.Header.Get("Content-Type"))
	}
	dora := h.signIn(h.user("dora", people.Operator))
	for _, path := range []string{"/nothing", "/delegations/000000"} {
		if a := dora.get(path); a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "Session of dora") {
			t.Errorf("%s does not know who asks: %d %.200s", path, a.StatusCode, a.body)
		}
	}
	if m := h.ask("GET", "/metrics", "", ""); !strings.Contains(m.body, `gatehouse_delegations{state="running"} 2`) || !strings.Contains(m.body, "gatehouse_http_request_duration_seconds") {
		t.Errorf("metrics: %.300s", m.body)
	}
}
