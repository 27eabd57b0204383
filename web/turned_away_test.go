package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// A verdict of somebody without the role does not get as far as the gate, and is in the
// history of the task all the same: one line for each door and person. One on a
// request that there is not is in that of the system.
func TestAVerdictThatIsTurnedAwayAtTheDoorIsInTheHistory(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	r := h.request(dora)
	form := url.Values{"verdict": {"approve"}, "digest": {r.Revision.Digest}, "revision": {"1"}}
	page := h.signIn(h.user("eve", people.Auditor))
	chat := h.signIn(h.user("olga", people.Operator))
	token := h.token(h.user("tom", people.Operator))
	narrow := h.token(h.user("bob", people.Approver), people.ApprovalsRead)
	body := `{"verdict":"approve","digest":"` + r.Revision.Digest + `","revision":1}`
	for range 2 { // again within a minute is no further line
		has(t, page.post("/approvals/"+r.ID+"/decision", form), http.StatusForbidden)
		has(t, chat.post("/chat/approvals/"+r.ID+"/decision", form), http.StatusForbidden)
		h.expect(http.StatusForbidden, "", "POST", v1+"/approvals/"+r.ID+"/decision", token, body)
		h.expect(http.StatusForbidden, "", "POST", v1+"/approvals/"+r.ID+"/decision", narrow, body)
	}
	page.post("/approvals/apr_00000000000000000000000000/decision", form)
	page.get("/approvals/" + r.ID)

	var got []string
	all, err := h.store.Events(h.ctx, r.TaskID, 0, 200)
	h.must(err)
	for _, e := range all {
		if e.Type != event.VerdictRefused {
			continue
		}
		var data struct {
			Channel, Code, Message string
			ApprovalID             string `json:"approval_id"`
		}
		h.must(json.Unmarshal(e.Data, &data))
		if data.ApprovalID != r.ID || data.Message == "" || e.DelegationID != r.DelegationID {
			t.Errorf("event %+v %s", e, e.Data)
		}
		got = append(got, e.Actor+" "+data.Channel+" "+data.Code)
	}
	if want := "eve web not_an_approver, olga chat not_an_approver, tom api not_an_approver, bob api forbidden"; strings.Join(got, ", ") != want {
		t.Errorf("in the history: %q, want %q", strings.Join(got, ", "), want)
	}
	system, err := h.store.Events(h.ctx, event.System, 0, 200)
	h.must(err)
	elsewhere := 0
	for _, e := range system {
		if e.Type == event.VerdictRefused && e.Actor == "eve" {
			elsewhere++
		}
	}
	if elsewhere != 1 {
		t.Errorf("%d lines of the request that there is not", elsewhere)
	}
	if after, err := h.store.Request(h.ctx, r.ID); err != nil || after.State != approval.Pending || len(after.Decisions) != 0 {
		t.Errorf("%+v, %v", after, err)
	}
}

// The card of revision 1 is still in somebody's chat when revision 3 is asked, of the same
// tree: its form names what it showed, and does not count for what it did not.
func TestAnOldCardOfTheSameTreeDoesNotApproveTheNewRevision(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator))
	v := h.signIn(h.user("ann", people.Approver))
	address := "/chat/approvals/" + r.ID + "/decision"
	card := v.get("/chat").body
	if !strings.Contains(card, `name="digest" value="`+r.Revision.Digest+`"`) || !strings.Contains(card, `name="revision" value="1"`) {
		t.Fatal("the card does not name what it shows")
	}
	old := url.Values{"verdict": {"approve"}, "digest": {r.Revision.Digest}, "revision": {"1"}, "comment": {"typed"}}
	h.must(h.store.InGate(h.ctx, r.TaskID, func(tx approval.Tx) error {
		now, err := tx.Request(h.ctx, r.ID)
		for _, d := range []string{strings.Repeat("9", 64), r.Revision.Digest} {
			if err != nil {
				return err
			}
			now.Revision.State = approval.Superseded
			if err = tx.SaveRequest(h.ctx, now); err != nil {
				return err
			}
			now.Revision.N, now.Revision.Digest, now.Revision.State = now.Revision.N+1, d, approval.Pending
			err = tx.SaveRequest(h.ctx, now)
		}
		return err
	}))
	for _, verdict := range []string{"approve", "reject", "request_changes"} {
		old.Set("verdict", verdict)
		has(t, v.post(address, old), http.StatusConflict, "Revision 3 replaced the one you read, revision 1", "typed")
	}
	old.Set("verdict", "approve")
	old.Del("revision") // and without its number the digest does not say which
	has(t, v.post(address, old), http.StatusConflict, "Revisions 1 and 3 have the same files")
	if after, err := h.store.Request(h.ctx, r.ID); err != nil || after.Revision.N != 3 || after.State != approval.Pending || len(after.Decisions) != 0 {
		t.Fatalf("revision %d is %s with %+v, %v", after.Revision.N, after.State, after.Decisions, err)
	}
	if card := v.get("/chat").body; !strings.Contains(card, `name="revision" value="3"`) {
		t.Fatal("the card of now does not name its revision")
	}
	old.Set("revision", "3")
	has(t, v.post(address, old), http.StatusOK, "ann approved in chat")
}
