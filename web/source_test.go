package web_test

import (
	"net/http"
	"testing"

	"gatehouse/orchestrator/people"
)

// POST /tasks takes what a task is about elsewhere; GET /tasks and the task's page say it.
func TestTheSourceOfATaskIsShown(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Operator)
	b := h.signIn(ann)
	made := h.ask("POST", "/api/v1/tasks", h.token(ann), `{"agent":"kik","text":"Mend it","source":{"kind":"gitlab","ref":"group/app!17","url":"https://git.example/17","title":"Resume breaks"}}`)
	if made.StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}
	id := made.json(t)["id"].(string)
	got := h.ask("GET", "/api/v1/tasks/"+id, h.token(ann), "").json(t)["source"].(map[string]any)
	if got["kind"] != "gitlab" || got["ref"] != "group/app!17" || got["url"] != "https://git.example/17" || got["title"] != "Resume breaks" {
		t.Errorf("the task says %v", got)
	}
	h.says(b.get("/delegations/"+id), http.StatusOK, "about gitlab", `href="https://git.example/17"`, "group/app!17", "Resume breaks")
	if bad := h.ask("POST", "/api/v1/tasks", h.token(ann), `{"agent":"kik","text":"x","source":{"kind":"gitlab","url":"javascript:1"}}`); bad.StatusCode != http.StatusBadRequest {
		t.Errorf("a script as address: %d %s", bad.StatusCode, bad.body)
	}
}
