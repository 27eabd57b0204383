package web_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/trigger"
)

// A trigger takes so many signed calls a minute; the next one is told when to come again,
// leaves no task, and stands on the trigger's page. Strangers use nothing of it up.
func TestATriggerHasARateLimit(t *testing.T) {
	h := open(t)
	b := h.signIn(h.user("ann", people.Operator))
	spec := ciFailed()
	spec.Rate = 2
	h.hooks(spec)
	call := func(n int) answer {
		return h.github("ci-failed", fmt.Sprintf("d%d", n), fmt.Sprintf(`{"action":"completed","n":%d,"workflow_run":{"name":"Build"}}`, n))
	}
	for range 5 {
		if a := h.ask("POST", "/hooks/ci-failed", "", "{}", func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256=00") }); a.StatusCode != http.StatusUnauthorized {
			t.Fatalf("a stranger got %d", a.StatusCode)
		}
	}
	for n := range 2 {
		if a := call(n); a.StatusCode != http.StatusAccepted {
			t.Fatalf("call %d: %d %s", n, a.StatusCode, a.body)
		}
	}
	over := call(2)
	wait, err := strconv.Atoi(over.Header.Get("Retry-After"))
	if over.StatusCode != http.StatusTooManyRequests || err != nil || wait < 1 || wait > 30 || over.json(t)["code"] != "rate_limited" || h.tasks() != 2 {
		t.Fatalf("one too many: %d %s, Retry-After %q, %d tasks", over.StatusCode, over.body, over.Header.Get("Retry-After"), h.tasks())
	}
	h.says(b.get("/triggers/ci-failed"), http.StatusOK, trigger.OverRate)
}
