package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// Of each repository in which approved changes wait the API and the page say how many they
// are, at which pace the last ones landed, and what each of them waits for.
func TestThePaceOfLandingIsTold(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	bob := h.signIn(h.user("bob", people.Approver))
	var asked []approval.Request
	for range 3 {
		r := h.request(dora)
		if a := bob.post("/approvals/"+r.ID+"/decision", url.Values{"verdict": {"approve"}, "digest": {digest}, "tick": {"unviewed"}}); a.StatusCode != http.StatusOK {
			t.Fatalf("approving: %d", a.StatusCode)
		}
		asked = append(asked, r)
	}
	change := func(r approval.Request, do func(tx approval.Tx, d *orchestrator.Delegation) error) {
		h.must(h.store.InGate(h.ctx, r.TaskID, func(tx approval.Tx) error {
			d, err := tx.Delegation(h.ctx, r.DelegationID)
			if err != nil {
				return err
			}
			return do(tx, d)
		}))
	}
	waits := func(query string) (queue map[string]any, says string) {
		got := h.expect(http.StatusOK, "", "GET", v1+"/waits"+query, h.token(dora), "").json(t)
		for _, item := range got["items"].([]any) {
			if row := item.(map[string]any); row["delegation_id"] == asked[1].DelegationID {
				says = row["waits_for"].(string) + ": " + row["says"].(string)
			}
		}
		if all := got["landings"].([]any); len(all) == 1 {
			queue = all[0].(map[string]any)
		}
		return queue, says
	}
	queue, says := waits("")
	if queue["repository"] != "app" || queue["waiting"] != 3.0 || queue["landed"] != 0.0 || queue["says"] != "3 approved changes of app land one after the other; none has landed there yet, so the pace is not known" {
		t.Errorf("before the first landing: %v", queue)
	}
	if says != "turn: its change is approved and waits for its turn to land in app" {
		t.Errorf("who waits: %s", says)
	}
	change(asked[0], func(tx approval.Tx, d *orchestrator.Delegation) error {
		ended := d.Since.Add(4 * time.Second)
		d.State, d.EndedAt = orchestrator.Completed, &ended
		if err := tx.CloseRequest(h.ctx, d.ID, orchestrator.RequestLanded, strings.Repeat("e", 40)); err != nil {
			return err
		}
		return tx.Move(h.ctx, d, orchestrator.Landing, d.Attempt)
	})
	change(asked[2], func(tx approval.Tx, d *orchestrator.Delegation) error {
		d.Work.Problem = "uncommitted work is in the way"
		return tx.Move(h.ctx, d, orchestrator.Landing, d.Attempt)
	})
	const want = "2 approved changes of app land one after the other; something is in the way of 1 of them; the last one took 4 s"
	if queue, _ = waits("?task=" + asked[1].TaskID); queue["says"] != want || queue["held_up"] != 1.0 || queue["pace_seconds"] != 4.0 || queue["left_seconds"] != 4.0 {
		t.Errorf("then: %v, want %q", queue, want)
	}
	if page := h.signIn(dora).get("/waits").body; !strings.Contains(page, want) {
		t.Errorf("the page does not say %q: %.2000s", want, page)
	}
}
