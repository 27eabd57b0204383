package web_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Exports and streams of a hostile house are read by programs: each line parses, no cell is a formula, nothing hidden
// is left hidden.
func TestHostileTextsInExportsAndStreams(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor)
	w := h.furnish(ann)
	b, token := h.signIn(ann), h.token(ann)
	for _, list := range []string{"requests", "delegations", "events"} {
		file := b.get(v1 + "/audit/export?filter=&format=csv&list=" + list)
		rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
		if err != nil || len(rows) < 4 {
			t.Errorf("%s: %d rows, %v", list, len(rows), err)
		}
		for _, row := range rows[1:] {
			for i, cell := range row {
				if cell != "" && strings.ContainsAny(cell[:1], "=+-@|%\t\r") || strings.ContainsAny(cell, "\u202e\u2066\x1b\x07") {
					t.Errorf("%s, column %s: %.100q", list, rows[0][i], cell)
				}
			}
		}
		for _, line := range strings.Split(strings.TrimSpace(b.get(v1+"/audit/export?filter=&format=jsonl&list="+list).body), "\n") {
			if !json.Valid([]byte(line)) || strings.ContainsAny(line, "\u202e\u2066\x1b\x07\u2028") {
				t.Errorf("%s has the line %.200q", list, line)
			}
		}
	}
	var text string
	h.sse(v1+"/delegations/"+w.chatted.ID+"/events", token, "", func(_, kind string, e event.Event) bool {
		text += string(e.Data)
		return kind != string(event.DelegationRefused)
	})
	if !strings.Contains(text, "window.__pwned=1") {
		t.Errorf("the stream hides what an agent wrote: %.500s", text)
	}
}

// Whatever stands in an address, every list answers with a page or a sentence, and never with a failure of ours.
func TestForgedAddressesAreAnsweredPlainly(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor)
	r := h.request(h.user("dora", people.Operator))
	h.triggers()
	b, token := h.signIn(ann), h.token(ann)
	forged := []string{"\x00", "\xff\xfe", hostile, "-1", "99999999999999999999999", strings.Repeat("9", 5000), "apr_00000000000000000000000000", "%", "'; DROP TABLE tasks; --", "../../etc/passwd", "{}"}
	pages := []string{"/", "/approvals", "/approvals/" + r.ID, "/delegations", "/delegations/" + r.TaskID, "/delegations/" + r.TaskID + "?tab=events", "/chat", "/agents", "/context", "/context?ns=notes",
		"/insights", "/waits", "/triggers/ci-failed", "/audit", "/audit?list=delegations", "/audit?list=events", "/audit/export", "/audit/holds", "/settings/policy",
		v1 + "/delegations", v1 + "/approvals", v1 + "/audit", v1 + "/events", v1 + "/context", v1 + "/context/notes", v1 + "/triggers/ci-failed/deliveries", v1 + "/waits", v1 + "/insights", v1 + "/chat",
		v1 + "/delegations/" + r.TaskID + "/events", v1 + "/policy/test"}
	params := []string{"after", "before", "limit", "filter", "state", "q", "from", "to", "tab", "rev", "compare", "page", "file", "open", "at", "find", "n", "columns", "zone", "ns", "key", "prefix", "since", "list", "part", "comment", "edit", "fold", "sel", "agent", "view"}
	for _, path := range pages {
		for i, param := range params {
			for _, value := range []string{forged[i%len(forged)], forged[(i*7+3)%len(forged)]} {
				join := "?"
				if strings.Contains(path, "?") {
					join = "&"
				}
				address := path + join + param + "=" + url.QueryEscape(value)
				var a answer
				if strings.HasPrefix(path, v1) {
					a = h.ask("GET", address, token, "")
				} else {
					a = b.get(address)
				}
				if a.StatusCode >= http.StatusInternalServerError || a.StatusCode == http.StatusUnauthorized || a.body == "" {
					t.Errorf("%.200s: %d %.300s", address, a.StatusCode, a.body)
				}
				if len(a.body) > largestPage || strings.Contains(a.body, "<script>window") || strings.Contains(a.body, "\u202e") && strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") && !strings.Contains(forProgram.ReplaceAllString(a.body, ""), "value=\"") {
					t.Errorf("%.200s: %d bytes, or another's script", address, len(a.body))
				}
			}
		}
	}
}

// Two tabs that decide at the same moment: one verdict counts, the other is told which.
func TestTwoTabsDecideOnce(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	b := h.signIn(bob)
	for range 5 {
		r := h.request(dora)
		verdicts := []string{"approve", "reject", "approve", "request_changes"}
		said := make([]answer, len(verdicts))
		var tabs sync.WaitGroup
		for i, verdict := range verdicts {
			tabs.Go(func() {
				said[i] = b.post("/approvals/"+r.ID+"/decision", form("verdict", verdict, "digest", digest, "comment", "from tab "+verdict))
			})
		}
		tabs.Wait()
		got, err := h.store.Request(h.ctx, r.ID)
		h.must(err)
		if len(got.Decisions) != 1 {
			t.Fatalf("decided: %+v", got.Decisions)
		}
		counted := 0
		for _, a := range said {
			switch {
			case a.StatusCode == http.StatusOK && strings.Contains(a.Request.URL.RawQuery, "done="):
				counted++
			case a.StatusCode == http.StatusConflict && strings.Contains(a.body, "was not counted"):
			default:
				_, main, _ := strings.Cut(a.body, "<main")
				t.Errorf("a tab was told %d at %s: %.800s", a.StatusCode, a.Request.URL, main)
			}
		}
		if counted != 1 || got.State == approval.Pending {
			t.Errorf("%d verdicts were called counted; it is %s", counted, got.State)
		}
	}
}
