package web_test

import (
	"net/http"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
)

// An agent elsewhere that calls our webhook with the header that it was called with comes to an
// end there, too: the task counts the hand-overs between systems that led to it.
func TestAWebhookCountsHopsBetweenSystems(t *testing.T) {
	h := open(t)
	h.user("ann", people.Operator)
	h.hooks(ciFailed())
	hops := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(agent.HopsHeader)] = values }
	}
	first := h.github("ci-failed", "d1", workflowRun(t), hops("2"))
	if first.StatusCode != http.StatusAccepted {
		t.Fatalf("got %d %s", first.StatusCode, first.body)
	}
	task, err := h.store.Task(h.ctx, first.json(t)["id"].(string))
	h.must(err)
	if task.RemoteHops != 2 {
		t.Errorf("the task counts %d hand-overs between systems", task.RemoteHops)
	}
	for _, bad := range [][]string{{"many"}, {"1", "2"}, {"-1"}} {
		if got := h.github("ci-failed", "d2", workflowRun(t)+" ", hops(bad...)); got.StatusCode != http.StatusBadRequest || h.tasks() != 1 {
			t.Errorf("%q: %d %s", bad, got.StatusCode, got.body)
		}
	}
}
