package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

const v1 = "/api/v1"

// A20, A33: sending returns while nobody works on it; a capability finds its agent.
func TestATaskIsSentOnceUnderItsKey(t *testing.T) {
	h := open(t)
	token := h.token(h.user("dora", people.Operator))
	first := h.expect(http.StatusAccepted, "", "POST", v1+"/tasks", token, `{"agent":"kik","text":"Fix","key":"k1"}`).json(t)
	again := h.expect(http.StatusOK, "", "POST", v1+"/tasks", token, `{"agent":"kik","text":"Fix","key":"k1"}`).json(t)
	if first["id"] != again["id"] || first["state"] != "queued" || !strings.HasPrefix(first["delegation_id"].(string), "dlg_") {
		t.Fatalf("first %v, again %v", first, again)
	}
	h.expect(http.StatusConflict, "key_reused", "POST", v1+"/tasks", token, `{"agent":"kik","text":"Other","key":"k1"}`)
	h.expect(http.StatusConflict, "unknown_agent", "POST", v1+"/tasks", token, `{"agent":"nobody","text":"Fix"}`)
	if no := h.expect(http.StatusNotFound, "not_found", "POST", v1+"/tasks", token, `{"agent":"kik","text":"Fix","repository":"ap"}`).json(t)["detail"]; no != `There is no repository "ap". Known repositories: app.` {
		t.Errorf("a repository that is not there: %v", no)
	}
	dry := h.expect(http.StatusOK, "", "POST", v1+"/tasks", token, `{"capability":"planning","text":"Fix","dry_run":true}`).json(t)
	if dry["agent"] != "kik" || dry["id"] != "" {
		t.Errorf("a dry run stored something or chose nobody: %v", dry)
	}
}

// A5, A8, A9, A30: a delegation tells its id, from whom and to whom, the task that it is
// traced by, its text and its state; the names of the sources lead to the same.
func TestADelegationHasThePublishedShape(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, root := h.task(dora, "Fix")
	for _, id := range []string{task.ID, root.ID, root.ID[len(root.ID)-10:]} {
		d := h.expect(http.StatusOK, "", "GET", v1+"/delegations/"+id, token, "").json(t)
		for key, want := range map[string]any{"id": root.ID, "task_id": task.ID, "parent_id": nil, "from": "", "to": "kik", "text": "Fix", "state": "queued",
			"depth": float64(0), "result": nil, "error": nil, "approval_id": nil, "started_at": nil, "ended_at": nil} {
			if got, ok := d[key]; !ok || got != want {
				t.Errorf("%s: %s is %v, want %v", id, key, got, want)
			}
		}
		if c, ok := d["chain"].([]any); !ok || len(c) != 0 {
			t.Errorf("the root's chain is %v, want []", d["chain"])
		}
		usage := d["usage"].(map[string]any)
		if usage["usd"] != nil || usage["input_tokens"] != float64(0) {
			t.Errorf("usage is %v", usage)
		}
		if !strings.HasSuffix(d["created_at"].(string), "Z") {
			t.Errorf("created_at is %v, not UTC", d["created_at"])
		}
	}
	tree := h.expect(http.StatusOK, "", "GET", v1+"/tasks/"+task.ID+"/tree", token, "").json(t)
	if len(tree["items"].([]any)) != 1 {
		t.Errorf("tree: %v", tree)
	}
	h.expect(http.StatusNotFound, "not_found", "GET", v1+"/delegations/dlg_00000000000000000000000000", token, "")
	h.expect(http.StatusNotFound, "not_found", "GET", v1+"/delegations/%27%3B--", token, "")
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/delegations?after=dlg_forged", token, "")
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/delegations?state=sleeping", token, "")
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/delegations?stat=queued", token, "")
	status := h.expect(http.StatusOK, "", "GET", "/delegation-status?id="+task.ID, token, "").json(t)
	if status["id"] != root.ID || status["request_id"] != root.ID || status["trace_id"] != task.ID || status["from_agent"] != "" || status["to_agent"] != "kik" || status["status"] != "notice" || status["detail"] != status["state"] || status["body"] == "" {
		t.Errorf("delegation-status: %v", status)
	}
}

func TestEventsOfATaskAreAscendingFromOne(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, _ := h.task(dora, "Fix")
	page := h.expect(http.StatusOK, "", "GET", v1+"/delegations/"+task.ID+"/events?limit=1", token, "").json(t)
	items := page["items"].([]any)
	if items[0].(map[string]any)["n"] != float64(1) || page["next"] == nil {
		t.Fatalf("first page: %v", page)
	}
	page = h.expect(http.StatusOK, "", "GET", fmt.Sprintf("%s/delegations/%s/events?after=%v", v1, task.ID, page["next"]), token, "").json(t)
	if items = page["items"].([]any); items[0].(map[string]any)["n"] != float64(2) || page["next"] != nil {
		t.Fatalf("second page: %v", page)
	}
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/delegations/"+task.ID+"/events?after=-1", token, "")
}

func TestHostileJSONIsRefusedWithAReason(t *testing.T) {
	h := open(t)
	token := h.token(h.user("dora", people.Operator))
	for name, c := range map[string]struct {
		body, code, words string
		status            int
	}{
		"unknown field":          {`{"agent":"kik","txt":"Fix"}`, "bad_request", "Did you mean text?", 400},
		"another case":           {`{"agent":"kik","Text":"Fix"}`, "bad_request", "Did you mean text?", 400},
		"the same field twice":   {`{"agent":"kik","text":"a","text":"b"}`, "bad_request", "twice", 400},
		"twice by an escape":     {`{"agent":"kik","text":"a","te\u0078t":"b"}`, "bad_request", "twice", 400},
		"free keys in two cases": {`{"agent":"kik","text":"a","budget":{"tokens":1,"Tokens":2}}`, "bad_request", "differ in their case only", 400},
		"another document":       {`{"agent":"kik","text":"a"}{}`, "bad_request", "more after", 400},
		"a wrong type":           {`{"agent":"kik","text":7}`, "bad_request", "type string", 400},
		"half a document":        {`{"agent":"kik"`, "bad_request", "", 400},
		"not JSON":               {`agent=kik`, "bad_request", "not JSON", 400},
		"not UTF-8":              {"{\"agent\":\"kik\",\"text\":\"\xff\"}", "bad_request", "UTF-8", 400},
		"too deep":               {`{"budget":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, "bad_request", "nested", 400},
		"too large":              {`{"agent":"kik","text":"` + strings.Repeat("a", 3<<20) + `"}`, "too_large", "", 413},
		"a text over its limit":  {`{"agent":"kik","text":"` + strings.Repeat("a", 300<<10) + `"}`, "bad_request", "limit", 400},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.expect(c.status, c.code, "POST", v1+"/tasks", token, c.body)
			if detail := a.json(t)["detail"].(string); !strings.Contains(detail, c.words) {
				t.Errorf("the answer %q does not say %q", detail, c.words)
			}
		})
	}
	h.expect(http.StatusUnsupportedMediaType, "unsupported_media_type", "POST", v1+"/tasks", token, `{"agent":"kik","text":"a"}`,
		func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
}

func TestTheFirstDecisionWinsAndOthersLearnWho(t *testing.T) {
	h := open(t)
	dora, ann, bob := h.user("dora", people.Operator, people.Approver), h.user("ann", people.Approver), h.user("bob", people.Approver)
	r := h.request(dora)
	path := v1 + "/approvals/" + r.ID
	got := h.expect(http.StatusOK, "", "GET", path, h.token(ann), "").json(t)
	for key, want := range map[string]any{"state": "pending", "digest": digest, "target": "main", "revision": float64(1), "expires_at": nil} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	for _, key := range []string{"files", "warnings", "notes", "checks", "decisions", "cards"} {
		if _, ok := got[key].([]any); !ok {
			t.Errorf("%s is %v, want a list", key, got[key])
		}
	}
	approve := fmt.Sprintf(`{"verdict":"approve","digest":%q}`, digest)
	h.expect(http.StatusForbidden, "four_eyes", "POST", path+"/decision", h.token(dora), approve)
	h.expect(http.StatusForbidden, "not_an_approver", "POST", path+"/decision", h.token(h.user("root", people.Admin)), approve)
	h.expect(http.StatusConflict, "superseded", "POST", path+"/decision", h.token(ann), fmt.Sprintf(`{"verdict":"approve","digest":"0000%s"}`, digest[4:]))
	after := h.expect(http.StatusOK, "", "POST", path+"/decision", h.token(ann), approve).json(t)
	if after["state"] != "approved" || after["decisions"].([]any)[0].(map[string]any)["channel"] != "api" {
		t.Fatalf("after the yes: %v", after)
	}
	lost := h.expect(http.StatusConflict, "already_decided", "POST", path+"/decision", h.token(bob), approve).json(t)
	if detail := lost["detail"].(string); !strings.Contains(strings.ToLower(detail), "ann") {
		t.Errorf("the loser does not learn who won: %q", detail)
	}
	h.expect(http.StatusOK, "", "GET", path+"/evidence", h.token(ann), "")
	patch := h.expect(http.StatusOK, "", "GET", path+"/patch", h.token(ann), "")
	if !strings.HasPrefix(patch.Header.Get("Content-Type"), "text/x-diff") {
		t.Errorf("patch is %s", patch.Header.Get("Content-Type"))
	}
}

func TestManyDecideAtOnceAndOneWins(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator))
	const n = 40
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = h.token(h.user(fmt.Sprintf("p%d", i), people.Approver))
	}
	results := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			results[i] = h.ask("POST", v1+"/approvals/"+r.ID+"/decision", tokens[i], fmt.Sprintf(`{"verdict":"approve","digest":%q}`, digest))
		})
	}
	wg.Wait()
	won := 0
	for _, a := range results {
		switch a.StatusCode {
		case http.StatusOK:
			won++
		case http.StatusConflict:
			if a.json(t)["code"] != "already_decided" {
				t.Errorf("a loser got %s", a.body)
			}
		default:
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	}
	if won != 1 {
		t.Errorf("%d won, want 1", won)
	}
}

func TestARunSeesItsOwnTaskAndNothingElse(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	mine, root := h.task(dora, "mine")
	other, _ := h.task(dora, "other")
	token := orchestrator.RunTokenPrefix + "secret"
	h.running(root, token)
	h.expect(http.StatusOK, "", "GET", v1+"/tasks/"+mine.ID, token, "")
	h.expect(http.StatusNotFound, "not_found", "GET", v1+"/tasks/"+other.ID, token, "")
	h.expect(http.StatusNotFound, "not_found", "GET", v1+"/delegations/"+other.ID+"/events", token, "")
	for _, path := range []string{"/delegations", "/events"} {
		h.expect(http.StatusForbidden, "forbidden", "GET", v1+path, token, "")
	}
	h.expect(http.StatusForbidden, "forbidden", "POST", v1+"/tasks", token, `{"agent":"kik","text":"x"}`)
	h.expect(http.StatusForbidden, "forbidden", "POST", v1+"/delegations", h.token(dora), `{"to":"coder","text":"x"}`)
	h.expect(http.StatusUnauthorized, "unauthorized", "GET", v1+"/tasks/"+mine.ID, orchestrator.RunTokenPrefix+"wrong", "")
}

func TestContextEntriesLiveAndDie(t *testing.T) {
	h := open(t)
	token := h.token(h.user("dora", people.Operator))
	e := h.expect(http.StatusOK, "", "PUT", v1+"/context/perf/a%2Fb", token, `{"value":"1","ttl_seconds":60}`).json(t)
	if e["key"] != "a/b" || e["agent"] != "dora" || e["expires_at"] == nil {
		t.Fatalf("entry: %v", e)
	}
	h.expect(http.StatusOK, "", "GET", v1+"/context/perf/a%2Fb", token, "")
	h.expect(http.StatusBadRequest, "bad_request", "PUT", v1+"/context/perf/x", token, `{"value":"1","ttl_seconds":0}`)
	h.expect(http.StatusBadRequest, "bad_request", "PUT", v1+"/context/perf/x", token, `{"ttl_seconds":5}`)
	list := h.expect(http.StatusOK, "", "GET", v1+"/context/perf?prefix=a", token, "").json(t)
	if len(list["items"].([]any)) != 1 {
		t.Errorf("list: %v", list)
	}
	h.expect(http.StatusOK, "", "POST", v1+"/context/perf/a%2Fb/touch", token, "")
	// K42: structured reads name the entry whose value is no JSON.
	if data := h.expect(http.StatusOK, "", "GET", v1+"/context/perf/a%2Fb?structured=true", token, "").json(t)["data"]; fmt.Sprint(data) != "1" {
		t.Errorf("structured %v", data)
	}
	h.expect(http.StatusOK, "", "PUT", v1+"/context/perf/text", token, `{"value":"no json","ttl":"performance"}`)
	if a := h.expect(http.StatusConflict, "", "GET", v1+"/context/perf/text?structured=true", token, ""); !strings.Contains(a.body, "perf/text") {
		t.Errorf("%s", a.body)
	}
	// K39: extension pushes an expiry only forward, K35 K36 K37: presets by name.
	e = h.expect(http.StatusOK, "", "PUT", v1+"/context/perf/text", token, `{"value":"v","ttl_seconds":5,"extend":true}`).json(t)
	if at, err := time.Parse(time.RFC3339, fmt.Sprint(e["expires_at"])); err != nil || time.Until(at) < 23*time.Hour {
		t.Errorf("extended to %v %v", e["expires_at"], err)
	}
	if e = h.expect(http.StatusOK, "", "PUT", v1+"/context/perf/text", token, `{"value":"v","ttl":"never","extend":true}`).json(t); e["expires_at"] != nil {
		t.Errorf("extended for ever: %v", e["expires_at"])
	}
	for _, body := range []string{`{"value":"1","ttl":"soon"}`, `{"value":"1","ttl":"-1h"}`, `{"value":"1","ttl":"1h","ttl_seconds":1}`, `{"value":"1","ttl_seconds":9223372036854775807}`, `{"value":"1","ttl_seconds":-1}`, `{"value":"a\u0000"}`, `{"value":"` + strings.Repeat("x", 300<<10) + `"}`} {
		h.expect(http.StatusBadRequest, "bad_request", "PUT", v1+"/context/perf/x", token, body)
	}
	h.expect(http.StatusBadRequest, "bad_request", "POST", v1+"/context/perf/text/touch", token, `{"ttl":"never"}`)
	h.expect(http.StatusBadRequest, "bad_request", "PUT", v1+"/context/perf/a%E2%80%AEb", token, `{"value":"1"}`)
	// P21b: who did what, with pages.
	uses := h.expect(http.StatusOK, "", "GET", v1+"/context/perf/text/uses?limit=2", token, "").json(t)
	if items, _ := uses["items"].([]any); len(items) != 2 || uses["next"] == nil || !strings.Contains(fmt.Sprint(items[0]), "kind:write") {
		t.Errorf("uses %v", uses)
	}
	h.expect(http.StatusOK, "", "GET", v1+"/context/perf/text/uses?after="+fmt.Sprint(uses["next"]), token, "")
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/context/perf/text/uses?after=x", token, "")
	if topics := h.expect(http.StatusOK, "", "GET", v1+"/context", token, "").json(t); !strings.Contains(fmt.Sprint(topics), "namespace:perf") {
		t.Errorf("topics %v", topics)
	}
	h.expect(http.StatusOK, "", "POST", v1+"/context/cleanup", token, "") // K34
	h.expect(http.StatusOK, "", "GET", v1+"/context/cleanup", token, "")  // a namespace of that name
	h.expect(http.StatusNoContent, "", "DELETE", v1+"/context/perf/a%2Fb", token, "")
	h.expect(http.StatusNotFound, "not_found", "GET", v1+"/context/perf/a%2Fb", token, "")
}

func TestTheHistoryVerifiesAndExports(t *testing.T) {
	h := open(t)
	token := h.token(h.user("aud", people.Auditor))
	h.task(h.user("dora", people.Operator), "Fix")
	if v := h.expect(http.StatusOK, "", "GET", v1+"/audit/verify", token, "").json(t); v["ok"] != true {
		t.Errorf("verify: %v", v)
	}
	h.awaitOrder(3)
	lines := strings.Split(strings.TrimSpace(h.expect(http.StatusOK, "", "GET", v1+"/audit/export", token, "").body), "\n")
	if len(lines) < 3 || !strings.Contains(lines[len(lines)-1], `"type":"seal"`) {
		t.Errorf("export: %d lines, last %s", len(lines), lines[len(lines)-1])
	}
	csv := h.expect(http.StatusOK, "", "GET", v1+"/audit/export?format=csv", token, "").body
	if !strings.HasPrefix(csv, "at,task_id,n,") || !strings.Contains(csv, "# rows: ") {
		t.Errorf("csv: %s", csv)
	}
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/audit/export?format=xls", token, "")
}

func TestABadConfigurationChangesNothing(t *testing.T) {
	h := open(t)
	a := h.expect(http.StatusUnprocessableEntity, "config", "POST", v1+"/config/reload", h.token(h.user("root", people.Admin)), "")
	if !strings.Contains(a.body, "gatehouse.yaml:3:1") {
		t.Errorf("the answer names no place: %s", a.body)
	}
}

func TestApprovalsCanBeListedByState(t *testing.T) {
	h := open(t)
	token := h.token(h.user("ann", people.Approver))
	h.request(h.user("dora", people.Operator))
	for state, want := range map[approval.State]int{approval.Pending: 1, approval.Landed: 0} {
		list := h.expect(http.StatusOK, "", "GET", v1+"/approvals?state="+string(state), token, "").json(t)
		if got := len(list["items"].([]any)); got != want {
			t.Errorf("%s: %d requests, want %d", state, got, want)
		}
	}
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/approvals?after=apr_x", token, "")
}
