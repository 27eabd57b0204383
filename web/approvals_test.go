package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
)

// The list of requests: what waits is oldest first, filters narrow it, counts tell what
// each tab has, and pages go on by key.
func TestTheListOfRequestsIsNarrowedAndCounted(t *testing.T) {
	h := open(t)
	dora, ann := h.user("dora", people.Operator), h.user("ann", people.Approver, people.Operator)
	for i := range 53 {
		h.request(dora, func(r *approval.Request) {
			r.Title = fmt.Sprintf("Change %02d", i)
			if i%10 == 0 {
				r.Rule.Name = `cor"e <b>`
			}
			if i == 7 {
				r.Agent = "kik"
			}
		})
	}
	h.request(ann, func(r *approval.Request) { r.Title = "Her own change" })
	b := h.signIn(ann)
	titles := func(body string) []string {
		return regexp.MustCompile(`Change \d\d|Her own change`).FindAllString(body, -1)
	}
	first := b.get("/approvals")
	has(t, first, 200, `Pending`, `<span class="tab-count">54</span>`, "newer ›")
	if got := titles(first.body); len(got) != 50 || got[0] != "Change 00" || got[49] != "Change 49" {
		t.Fatalf("the first page: %v", got)
	}
	next := regexp.MustCompile(`href="(/approvals[^"]*after=[^"]*)"`).FindStringSubmatch(first.body)
	second := b.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	has(t, second, 200, "‹ oldest", `<span class="tab-count">54</span>`)
	if got := titles(second.body); len(got) != 4 || got[3] != "Her own change" {
		t.Errorf("the second page: %v", got)
	}
	if got := titles(b.get("/approvals?state=all").body); len(got) != 50 || got[0] != "Her own change" {
		t.Errorf("all, newest first: %v", got)
	}
	for query, want := range map[string]int{
		"rule=" + url.QueryEscape(`cor"e <b>`): 6, "rule=cor": 0, "agent=kik": 1, "agent=coder&rule=rest": 47, "repository=app": 50, "repository=none": 0,
		"rule=%25": 0, "state=landed": 0, "state=landed&rule=rest": 0,
	} {
		a := b.get("/approvals?" + query)
		if got := len(titles(a.body)); a.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %d with %d rows, want %d", query, a.StatusCode, got, want)
		}
	}
	has(t, b.get("/approvals?rule=cor"), 200, "No request matches <code>", "rule:cor", "54 without the filter.")
	// Four eyes keeps her own change from what is hers to approve.
	mine := b.get("/approvals?mine=1&agent=coder")
	if got := titles(mine.body); len(got) != 50 || strings.Contains(mine.body, "Her own change") {
		t.Errorf("mine: %v", got)
	}
	has(t, b.get("/approvals?mine=1&rule=none"), 200, "mine:1")
	has(t, b.get("/approvals?state=nonsense"), http.StatusBadRequest)
	has(t, b.get("/approvals?after=nonsense"), http.StatusBadRequest)
}
