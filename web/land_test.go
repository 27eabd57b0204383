package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// Deciding does not include starting work: the form that tries a landing again runs no
// task that has ended.
func TestAnApproverCannotRunATaskAgainByItsLanding(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator))
	bob := h.signIn(h.user("bob", people.Approver))
	if a := bob.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"reject"}, "digest": {digest}}); a.StatusCode != http.StatusOK {
		t.Fatalf("rejecting: %d", a.StatusCode)
	}
	if a := bob.post("/delegations/"+r.DelegationID+"/retry", nil); a.StatusCode != http.StatusForbidden {
		t.Errorf("running it again: %d", a.StatusCode)
	}
	if a := bob.post("/approvals/"+r.ID+"/land", nil); a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "No landing of this change") {
		t.Errorf("landing what was rejected: %d", a.StatusCode)
	}
	d, err := h.store.Delegation(h.ctx, r.DelegationID)
	if err != nil || d.State != orchestrator.Rejected {
		t.Errorf("the task is %s, %v", d.State, err)
	}
}

func TestALandingThatIsHeldUpIsTriedAgainByAnApprover(t *testing.T) {
	h := open(t)
	r := h.request(h.user("dora", people.Operator))
	bob := h.signIn(h.user("bob", people.Approver))
	if a := bob.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"approve"}, "digest": {digest}, "tick": {"unviewed"}}); a.StatusCode != http.StatusOK {
		t.Fatalf("approving: %d", a.StatusCode)
	}
	h.must(h.store.InGate(h.ctx, r.TaskID, func(tx approval.Tx) error {
		d, err := tx.Delegation(h.ctx, r.DelegationID)
		if err != nil {
			return err
		}
		d.ReadyAt = time.Now().AddDate(100, 0, 0)
		return tx.Move(h.ctx, d, d.State, d.Attempt)
	}))
	if a := bob.post("/approvals/"+r.ID+"/land", nil); a.StatusCode != http.StatusOK {
		t.Errorf("trying again: %d", a.StatusCode)
	}
	if d, err := h.store.Delegation(h.ctx, r.DelegationID); err != nil || d.State != orchestrator.Landing || d.ReadyAt.After(time.Now()) {
		t.Errorf("%s, due %v, %v", d.State, d.ReadyAt, err)
	}
}

// The secret is checked before the body is read: who does not know it costs nothing.
func TestTelegramsSecretComesBeforeTheBody(t *testing.T) {
	h := open(t)
	h.web.Telegram = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	h.must(err)
	defer conn.Close()
	h.must(conn.SetDeadline(time.Now().Add(5 * time.Second)))
	_, err = fmt.Fprintf(conn, "POST /hooks/telegram HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n")
	h.must(err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v %v", res, err)
	}
}

// Rights that were taken are taken from what is open, too.
func TestAnOpenConnectionMakesNoTaskForWhoLostTheRight(t *testing.T) {
	for what, change := range map[string]func(h *house, u people.User){
		"role": func(h *house, u people.User) {
			h.must(h.store.SetRoles(h.ctx, "test", u.ID, []people.Role{people.Auditor}))
		},
		"disabled": func(h *house, u people.User) { h.must(h.store.SetDisabled(h.ctx, "test", u.ID, true)) },
	} {
		h := open(t)
		dora := h.user("dora", people.Operator)
		c, _, err := h.socket(h.token(dora), nil)
		h.must(err)
		defer c.Close()
		h.must(c.SetReadDeadline(time.Now().Add(20 * time.Second)))
		change(h, dora)
		h.must(c.WriteJSON(map[string]any{"type": "chat", "text": "Do it", "key": "k1"}))
		var got struct{ Type, Code string }
		if err := c.ReadJSON(&got); err == nil && (got.Type != "error" || got.Code != "unauthorized") {
			t.Errorf("%s: %+v", what, got)
		}
		if page, err := h.store.List(h.ctx, orchestrator.Filter{}); err != nil || len(page.Items) != 0 {
			t.Errorf("%s: %d tasks, %v", what, len(page.Items), err)
		}
		if _, _, err := c.ReadMessage(); err == nil {
			t.Errorf("%s: the connection stays open", what)
		}
	}
}

// A landing that is being tried is what somebody wants who asks for another try: that is
// said, and is no error, for the API, on the task's page and on the request's.
func TestALandingThatIsBeingTriedNeedsNoRetry(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	r := h.request(dora)
	bob := h.signIn(h.user("bob", people.Approver))
	if a := bob.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"approve"}, "digest": {digest}, "tick": {"unviewed"}}); a.StatusCode != http.StatusOK {
		t.Fatalf("approving: %d", a.StatusCode)
	}
	h.must(h.store.InGate(h.ctx, r.TaskID, func(tx approval.Tx) error {
		d, err := tx.Delegation(h.ctx, r.DelegationID)
		if err != nil {
			return err
		}
		d.Holder, d.LeaseUntil = "n", time.Now().Add(time.Minute)
		return tx.Move(h.ctx, d, d.State, d.Attempt)
	}))
	const says = "It is being landed now."
	if got := h.expect(http.StatusOK, "", "POST", v1+"/delegations/"+r.DelegationID+"/retry", h.token(dora), "").json(t); got["message"] != says || got["state"] != "landing" {
		t.Errorf("the API answers %v", got)
	}
	if a := h.signIn(dora).post("/delegations/"+r.DelegationID+"/retry", nil); a.StatusCode != http.StatusOK || !strings.Contains(a.body, says) {
		t.Errorf("the task's page answers %d", a.StatusCode)
	}
	if a := bob.post("/approvals/"+r.ID+"/land", nil); a.StatusCode != http.StatusOK || !strings.Contains(a.body, says) {
		t.Errorf("the request's page answers %d", a.StatusCode)
	}
}
