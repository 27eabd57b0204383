package web_test

import (
	"net/http"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// An operator may read no requests and is told all the same for whom the work waits.
func TestAnOperatorIsToldForWhomTheWorkWaits(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	h.user("bob", people.Approver)
	r := h.request(dora)
	d := h.expect(http.StatusOK, "", "GET", v1+"/delegations/"+r.DelegationID, h.token(dora), "").json(t)
	if who, ok := d["waits_for"].([]any); !ok || len(who) != 1 || who[0] != "bob" {
		t.Errorf("waits for %v", d["waits_for"])
	}
	tree := h.expect(http.StatusOK, "", "GET", v1+"/tasks/"+r.TaskID+"/tree", h.token(dora), "").json(t)
	if who := tree["items"].([]any)[0].(map[string]any)["waits_for"]; who == nil || who.([]any)[0] != "bob" {
		t.Errorf("in the tree: waits for %v", who)
	}
	root, err := h.store.Delegation(h.ctx, r.DelegationID)
	h.must(err)
	token := orchestrator.RunTokenPrefix + "secret"
	h.running(root, token)
	if d = h.expect(http.StatusOK, "", "GET", v1+"/delegations/"+r.DelegationID, token, "").json(t); d["waits_for"] != nil {
		t.Errorf("a run is told who decides: %v", d["waits_for"])
	}
}

// A request that cannot get enough yeses says so, and each reader learns what they may do.
func TestARequestSaysWhatKeepsItFromAYes(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator, people.Approver), h.user("bob", people.Approver)
	r := h.request(dora, func(r *approval.Request) { r.Rule.Name, r.Rule.Need = "core", 2 })
	path := v1 + "/approvals/" + r.ID
	got := h.expect(http.StatusOK, "", "GET", path, h.token(bob), "").json(t)
	problem, _ := got["needs"].(map[string]any)["problem"].(string)
	if !strings.HasPrefix(problem, "This needs 2 approvers, but only bob can") {
		t.Errorf("the problem: %q", problem)
	}
	if got["refused"] != nil || len(got["may"].([]any)) != 3 {
		t.Errorf("bob may %v: %v", got["may"], got["refused"])
	}
	got = h.expect(http.StatusOK, "", "GET", path, h.token(dora), "").json(t)
	if why, _ := got["refused"].(string); !strings.Contains(why, "You asked for this") || len(got["may"].([]any)) != 2 {
		t.Errorf("dora may %v: %v", got["may"], got["refused"])
	}
	enough := h.expect(http.StatusOK, "", "GET", v1+"/approvals/"+h.request(dora).ID, h.token(bob), "").json(t)
	if enough["needs"].(map[string]any)["problem"] != nil {
		t.Errorf("a request that bob can approve: %v", enough["needs"])
	}
}

// Who landed a part is told what was left out, on the task and on the request.
func TestAPageSaysWhatWasLeftOut(t *testing.T) {
	h := open(t)
	bob := h.user("bob", people.Approver, people.Operator)
	r := h.request(bob, func(r *approval.Request) {
		r.State, r.Revision.State, r.Landed = approval.Landed, approval.Landed, strings.Repeat("4", 40)
		r.Revision.Made, r.Revision.MadeFrom, r.Revision.Declined = approval.MadeByFiles, 1, []string{"three.txt", "two.txt"}
	})
	b := h.signIn(bob)
	for _, page := range []string{"/delegations/" + r.TaskID, "/approvals/" + r.ID} {
		if text := b.get(page).body; !strings.Contains(text, "1 of 3 files; left out: three.txt, two.txt") {
			t.Errorf("%s does not say what was left out", page)
		}
	}
}

// A token with too few scopes is told which one it lacks, apart from a person without the role.
func TestARefusalNamesTheScopeThatATokenLacks(t *testing.T) {
	h := open(t)
	root := h.user("root", people.Admin)
	got := h.expect(http.StatusForbidden, "forbidden", "GET", v1+"/policy/test", h.token(root, people.AdminScope), "").json(t)
	if detail := got["detail"].(string); !strings.Contains(detail, "lacks the scope approvals:read") || !strings.Contains(detail, "gatehouse token create root --scope approvals:read") {
		t.Errorf("a token: %q", detail)
	}
	got = h.expect(http.StatusForbidden, "forbidden", "GET", v1+"/policy/test", h.token(h.user("dora", people.Operator)), "").json(t)
	if detail := got["detail"].(string); !strings.Contains(detail, "needs the right approvals:read, which your roles do not give") || !strings.Contains(detail, "admin or approver or auditor") {
		t.Errorf("a role: %q", detail)
	}
}
