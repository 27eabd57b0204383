package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// What an agent says is formatted wherever people read it, and nothing in it works as markup of its own; what is
// approved stands there as it is.
func TestAnswersAreFormattedEverywhere(t *testing.T) {
	h := open(t)
	dora, ann := h.user("dora", people.Operator), h.user("ann", people.Approver, people.Auditor)
	const said = "I did **two** things:\n\n- one\n- `two`\n\n<img src=x onerror=alert(1)> [here](javascript:alert(1))"
	formatted := []string{"<strong>two</strong>", "<li>one</li>", "<code>two</code>", "&lt;img src=x"}
	r := h.request(dora, func(r *approval.Request) { r.Revision.Text = said })
	input, err := json.Marshal(map[string]string{"command": "echo **bold** <b>"})
	h.must(err)
	all := h.asks(dora, agent.Ask{Action: &agent.Action{Tool: "Bash", Input: input}}, question("Is it **two** or three?\n\n- one\n- `two`\n\n<img src=x>", "a", "b"))
	b := h.signIn(ann)
	for _, at := range []string{"/approvals/" + r.ID, "/approvals/" + r.ID + "/evidence", "/approvals/" + all[1].ID, "/approvals/" + all[1].ID + "/evidence", "/chat"} {
		a := b.get(at)
		h.says(a, http.StatusOK, formatted...)
		if strings.Contains(a.body, "<img src=x") || strings.Contains(a.body, `href="javascript:`) {
			t.Errorf("%s lets an agent's markup through", at)
		}
	}
	for _, at := range []string{"/approvals/" + all[0].ID, "/approvals/" + all[0].ID + "/evidence"} {
		if a := b.get(at); !strings.Contains(a.body, "**bold**") || strings.Contains(a.body, "<strong>bold") {
			t.Errorf("%s formats the input of a call: %d", at, a.StatusCode)
		}
	}

	task, root, _, err := h.engine.Submit(h.ctx, orchestrator.Submission{Agent: "kik", Text: "Say **it**", Via: origin.From(origin.Chat), Chat: dora.ID, RequesterID: dora.ID, Requester: dora.Name})
	h.must(err)
	h.must(h.store.InTask(h.ctx, task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(h.ctx, root.ID)
		if err != nil {
			return err
		}
		d.Result = &agent.Result{Text: said, Artifacts: []agent.Artifact{{Name: "plan.md", MediaType: "text/markdown; charset=utf-8", Text: "1. **first**"}, {Name: "raw.txt", MediaType: "text/plain", Text: "**raw**"}}}
		return tx.Move(h.ctx, d, d.State, d.Attempt)
	}))
	writer := h.signIn(dora)
	h.says(writer.get("/chat"), http.StatusOK, append(formatted, "Say **it**")...)
	h.says(writer.get("/delegations/"+task.ID), http.StatusOK, append(formatted, "Say **it**")...)
	if a := writer.get("/delegations/" + task.ID + "?tab=result"); !strings.Contains(a.body, "<strong>first</strong>") || strings.Contains(a.body, "raw**") {
		t.Errorf("the artifacts: %d %s", a.StatusCode, a.body)
	}
}
