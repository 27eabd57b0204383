package web_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/storetest"
)

// tricky is text that a page, a spreadsheet or a reader could take for something else.
const tricky = "=HYPERLINK(\"http://evil\") <script>alert(1)</script> \u202Etxt.exe\x1b[31m"

// both runs a story on both databases.
func both(t *testing.T, story func(t *testing.T, h *house)) {
	t.Run("SQLite", func(t *testing.T) { story(t, open(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { story(t, openAt(t, storetest.Postgres(t))) })
}

// decided is a request of u that somebody answered.
func (h *house) decided(u, by people.User, verdict string, change ...func(*approval.Request)) approval.Request {
	h.Helper()
	r := h.request(u, change...)
	h.expect(http.StatusOK, "", "POST", v1+"/approvals/"+r.ID+"/decision", h.token(by), `{"verdict":"`+verdict+`","digest":"`+digest+`","comment":"so it is"}`)
	return r
}

// team are the people of these stories, with an auditor who looks at what they did.
func (h *house) team() (dora, ann, bob people.User, auditor *browser) {
	h.Helper()
	return h.user("dora", people.Operator), h.user("ann", people.Approver), h.user("bob", people.Approver), h.signIn(h.user("iris", people.Auditor))
}

// lacks fails when a page has one of the texts.
func lacks(t *testing.T, a answer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("%s has %q", a.Request.URL, text)
		}
	}
}

func TestAnAuditorFindsWhatOneApproverDecided(t *testing.T) {
	both(t, func(t *testing.T, h *house) {
		dora, ann, bob, iris := h.team()
		anns := h.decided(dora, ann, "approve")
		bobs := h.decided(dora, bob, "reject", func(r *approval.Request) { r.Title = tricky })
		all := iris.get("/audit")
		has(t, all, http.StatusOK, `value="time:30d"`, "2 requests", "/approvals/"+anns.ID+"/evidence", "/approvals/"+bobs.ID+"/evidence", "ann api", "bob api (reject)", "⟦U+202E⟧", "without four eyes")
		lacks(t, all, "<script>alert", "\u202e")
		some := iris.get("/audit?filter=approver:bob")
		has(t, some, http.StatusOK, "1 request of 2", "/approvals/"+bobs.ID+"/evidence")
		lacks(t, some, anns.ID)
		has(t, iris.get("/audit?filter=-approver:bob"), http.StatusOK, "1 request of 2", anns.ID)
		has(t, iris.get("/audit?filter=state:landed+approver:bob"), http.StatusOK, "No request matches", "state:landed approver:bob", "2 without the filter.")
		has(t, iris.get("/audit?list=delegations&filter=requester:dora"), http.StatusOK, "2 delegations")
		has(t, iris.get("/audit?list=events&filter=type:approval.decided"), http.StatusOK, "2 events", "approval.decided")
	})
}

// A line that is not understood stays as it was typed; the page says what is near and works.
func TestALineThatIsNotUnderstoodStays(t *testing.T) {
	h := open(t)
	_, _, _, iris := h.team()
	token := h.token(h.user("root", people.Admin))
	for line, want := range map[string]string{
		"aprover:bob":              "Did you mean approver?",
		"state:landet":             "Did you mean landed?",
		"time:soon":                "is no day",
		`"open`:                    "A quote is not closed",
		strings.Repeat("x ", 1500): "2048",
		"approver:":                "has no value",
	} {
		a := iris.get("/audit?filter=" + url.QueryEscape(line))
		has(t, a, http.StatusBadRequest, want, "nothing is listed", `id="filter"`)
	}
	for _, path := range []string{"/audit?filter=&after=forged", "/audit?filter=&after=apr_00000000000000000000000000x", "/audit?list=delegations&filter=&after=apr_1", "/audit?list=events&filter=&after=%00"} {
		has(t, iris.get(path), http.StatusBadRequest, "That place in the list is not known", `id="filter"`)
	}
	has(t, iris.get("/audit?list=secrets"), http.StatusBadRequest, "There is no list of that name")
	for _, path := range []string{"?list=secrets&filter=", "?filter=aprover:bob", "?filter=&zone=../../etc/passwd", "?filter=&limit=0", "?filter=&after=forged", "?filter=&colour=red"} {
		h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/audit"+path, token, "")
	}
}

func TestFiltersArePickedColumnsChosenAndRemembered(t *testing.T) {
	h := open(t)
	dora, ann, _, iris := h.team()
	h.decided(dora, ann, "approve")
	a := iris.get("/audit?list=requests&filter=time:30d&p.state=approved&p.approver=ann&p.time=%3D&p.repository=")
	if got := a.Request.URL.Query().Get("filter"); got != "state:approved approver:ann time:30d" {
		t.Errorf("picked the line %q", got)
	}
	has(t, a, http.StatusOK, "1 request", `href="/audit?filter=`)
	// What the picker cannot show stays as it is, unless it is picked anew.
	a = iris.get("/audit?filter=-approver:bob&p.approver=%3D&p.state=")
	if got := a.Request.URL.Query().Get("filter"); got != "-approver:bob" {
		t.Errorf("picked the line %q", got)
	}
	a = iris.get("/audit?filter=&columns=time&columns=cost")
	has(t, a, http.StatusOK, ">Cost")
	lacks(t, a, ">Decided by</th>")
	lacks(t, iris.get("/audit?filter="), "Decided by\n", ">Chain")
	has(t, iris.get("/audit?filter=&columns=nothing"), http.StatusOK, "Decided by")
	live := iris.get("/audit?filter=&live=1")
	has(t, live, http.StatusOK, `data-live="all"`, `aria-checked="true"`)
	lacks(t, iris.get("/audit?filter="), `data-live="all"`)
}

func TestViewsAreOnesOwnOrEverybodys(t *testing.T) {
	h := open(t)
	_, _, _, iris := h.team()
	root := h.signIn(h.user("root", people.Admin))
	save := func(b *browser, form url.Values) answer { return b.post("/audit/views", form) }
	a := save(iris, url.Values{"name": {"Quarter " + tricky[:4]}, "list": {"requests"}, "filter": {"approver:bob time:90d"}, "columns": {"time,cost"}})
	has(t, a, http.StatusOK, "The view was saved.", "Quarter =HYP")
	if q := a.Request.URL.Query(); q.Get("filter") != "approver:bob time:90d" || q.Get("columns") != "time,cost" {
		t.Errorf("saving led to %s", a.Request.URL)
	}
	has(t, save(iris, url.Values{"name": {" "}, "list": {"requests"}, "filter": {"rule:core"}}), http.StatusBadRequest, "The view has no name.", `value="rule:core"`)
	has(t, save(iris, url.Values{"name": {"x"}, "list": {"requests"}, "filter": {"aprover:x"}}), http.StatusBadRequest, "Did you mean approver?")
	has(t, save(iris, url.Values{"name": {"x"}, "list": {"nothing"}}), http.StatusBadRequest, "There is no list")
	has(t, save(iris, url.Values{"name": {"x"}, "list": {"requests"}, "shared": {"yes"}}), http.StatusForbidden, "Only an admin")
	has(t, save(root, url.Values{"name": {"For all"}, "list": {"events"}, "filter": {""}, "shared": {"yes"}}), http.StatusOK, "For all")
	mine := iris.get("/audit")
	has(t, mine, http.StatusOK, "For all", "Quarter")
	lacks(t, root.get("/audit"), "Quarter")
	_, id, _ := strings.Cut(mine.body, `action="/audit/views/`)
	id, _, _ = strings.Cut(id, "/")
	if a := root.post("/audit/views/"+id+"/delete", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("an admin deletes somebody's own view: %d", a.StatusCode)
	}
	has(t, iris.post("/audit/views/"+id+"/delete", nil), http.StatusOK, "The view was deleted.")
	lacks(t, iris.get("/audit"), "Quarter")
}

// An export has exactly the rows of its filter, says how many, and is on record.
func TestAnExportHasWhatTheFilterShowsAndIsOnRecord(t *testing.T) {
	both(t, func(t *testing.T, h *house) {
		dora, ann, bob, iris := h.team()
		for range 3 {
			h.decided(dora, ann, "approve")
		}
		odd := h.decided(dora, bob, "reject", func(r *approval.Request) { r.Title, r.Chain = tricky, chain.Names{"+1", "coder"} })
		page := iris.get("/audit/export?list=requests&filter=requester:dora&zone=")
		has(t, page, http.StatusOK, "Export 4 requests", "requester:dora", "format=csv", "Times in the file are UTC")
		has(t, iris.get("/audit/export?filter=aprover:bob"), http.StatusBadRequest, "Did you mean approver?")
		file := iris.get(v1 + "/audit/export?list=requests&filter=" + url.QueryEscape("requester:dora") + "&format=csv&zone=Europe/Berlin")
		rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
		if err != nil || len(rows) != 6 || rows[5][0] != "# rows: 4" || rows[1][0] != odd.ID {
			t.Fatalf("%v %q", err, file.body)
		}
		for _, row := range rows[1:5] {
			for i, cell := range row {
				if cell != "" && strings.ContainsAny(cell[:1], "=+-@|%\t\r") || strings.ContainsAny(cell, "\u202e\x1b") {
					t.Errorf("column %s has %q", rows[0][i], cell)
				}
			}
		}
		lines := strings.Split(strings.TrimSpace(iris.get(v1+"/audit/export?list=requests&filter=approver:bob&format=jsonl").body), "\n")
		sealed := lines[len(lines)-1]
		lines = lines[:len(lines)-1]
		for _, want := range []string{`"type":"seal"`, `"scope":"selection"`, `"filter":"approver:bob"`, `"by":"iris"`, `"rows":1,`} {
			if !strings.Contains(sealed, want) {
				t.Errorf("the seal lacks %s: %s", want, sealed)
			}
		}
		var row, last map[string]any
		if err := json.Unmarshal([]byte(lines[0]), &row); err != nil || row["id"] != odd.ID || row["title"] != tricky || strings.Contains(lines[0], "\u202e") {
			t.Errorf("%v %s", err, lines[0])
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last["type"] != "count" || last["rows"] != float64(len(lines)-1) || len(lines) != 2 {
			t.Errorf("%v %v of %d lines", err, last, len(lines))
		}
		has(t, iris.get(v1+"/audit/export?list=delegations&filter=&format=csv"), http.StatusOK, "# rows: 4")
		events := iris.get(v1 + "/audit/export?list=events&filter=type:approval.decided&format=jsonl")
		if n := strings.Count(events.body, `"approval.decided"`); n != 4 || !strings.Contains(events.body, `"rows":4`) {
			t.Errorf("%d events: %s", n, events.body)
		}
		var exported []event.Event
		found, err := h.store.Events(h.ctx, event.System, 0, 500)
		h.must(err)
		for _, e := range found {
			if e.Type == "audit.exported" {
				exported = append(exported, e)
			}
		}
		if len(exported) != 4 || exported[0].Actor != "iris" || string(exported[0].Data) != `{"filter":"requester:dora","format":"csv","list":"requests","rows":4}` {
			t.Errorf("on record: %+v", exported)
		}
		token := h.token(h.user("root", people.Admin))
		for _, path := range []string{"?list=requests&filter=&format=pdf", "?filter=aprover:x", "?list=x"} {
			h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/audit/export"+path, token, "")
		}
	})
}

func TestVerifyingIsAButtonAndRemembersWhatItFound(t *testing.T) {
	h := open(t)
	dora, ann, _, iris := h.team()
	h.decided(dora, ann, "approve")
	has(t, iris.get("/audit/verify"), http.StatusOK, "Nobody has verified", ">Verify now</button>")
	has(t, iris.post("/audit/verify", nil), http.StatusOK, "Everything fits.", "by", "iris")
	has(t, iris.get("/audit"), http.StatusOK, "verified")
}

func TestEvidenceOfARequestIsOnePage(t *testing.T) {
	h := open(t)
	dora, ann, _, iris := h.team()
	r := h.decided(dora, ann, "approve", func(r *approval.Request) { r.Title = tricky; r.Rule.When = "true" })
	a := iris.get("/approvals/" + r.ID + "/evidence")
	has(t, a, http.StatusOK, "Evidence of one request", "dora", "so it is", digest, "approved through the API", "approval.decided", "The rule, as it was then", "format=bundle", "⟦U+202E⟧")
	lacks(t, a, "<script>alert", "\u202e")
	if got := h.expect(http.StatusOK, "", "GET", v1+"/approvals/"+r.ID+"/evidence", h.token(ann), ""); !strings.Contains(got.body, "Evidence of one request") {
		t.Error("the API's page is another one")
	}
	if a := iris.get("/approvals/apr_00000000000000000000000000/evidence"); a.StatusCode != http.StatusNotFound {
		t.Errorf("evidence of nothing: %d", a.StatusCode)
	}
}

// The list of tasks takes the same line; addresses with single parameters still lead to it.
func TestTheListOfTasksTakesTheSameLine(t *testing.T) {
	h := open(t)
	dora, ann, _, iris := h.team()
	h.decided(dora, ann, "approve")
	task, root := h.task(dora, "Mend the spline reticulator")
	h.running(root, "ghr_x")
	has(t, iris.get("/delegations"), http.StatusOK, `value="is:root"`, "Mend the spline")
	has(t, iris.get("/delegations?state=queued&q=spline"), http.StatusOK, "Mend the spline", `value="state:queued is:root spline"`)
	has(t, iris.get("/delegations?agent=coder"), http.StatusOK, `value="agent:coder"`)
	has(t, iris.get("/delegations?state=sleeping"), http.StatusBadRequest, "state is never", "sleeping")
	has(t, iris.get("/delegations?filter=state:failed"), http.StatusOK, "No task matches", "2 without the filter.")
	has(t, iris.get("/delegations?filter=&after=x"), http.StatusBadRequest, "That place in the list is not known")
	if a := iris.get("/delegations?filter=" + task.ID[len(task.ID)-8:]); a.Request.URL.Path != "/delegations/"+task.ID {
		t.Errorf("the end of an id led to %s", a.Request.URL)
	}
}
