package approval_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

func TestConsideringStoresNothing(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Expires: time.Hour})
	r := w.asked()
	if got, err := w.g.Consider(w.ctx, ballot(r, "bob", approval.Reject)); err != nil || got.ID != r.ID {
		t.Errorf("bob may reject: %v", err)
	}
	if _, err := w.g.Consider(w.ctx, ballot(r, "ann", approval.Approve)); orchestrator.CodeOf(err) != orchestrator.CodeFourEyes {
		t.Errorf("ann asked for it: %v", err)
	}
	if _, err := w.g.Consider(w.ctx, ballot(approval.Request{ID: "apr_none"}, "bob", approval.Reject)); orchestrator.CodeOf(err) != orchestrator.CodeNotFound {
		t.Errorf("no request: %v", err)
	}
	w.clock.step(2 * time.Hour)
	if _, err := w.g.Consider(w.ctx, ballot(r, "bob", approval.Approve)); orchestrator.CodeOf(err) != orchestrator.CodeExpired {
		t.Errorf("too late: %v", err)
	}
	if after := w.request(r.ID); after.Version != r.Version || after.State != approval.Pending || len(after.Decisions) != 0 {
		t.Errorf("request %+v", after)
	}
}

func TestVerdictsThatDidNotCountAreInTheHistory(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	long := strings.Repeat("ä", 5000) + "\x00"
	w.must(w.g.Refused(w.ctx, approval.Refusal{RequestID: r.ID, Actor: "bob", Channel: "telegram", Verdict: approval.Approve, Code: "superseded", Message: long}))
	w.must(w.g.Refused(w.ctx, approval.Refusal{RequestID: "apr_none", Actor: "telegram:5", Channel: "telegram", Code: "unknown_button", Message: "?"}))
	w.must(w.g.Refused(w.ctx, approval.Refusal{Actor: "telegram:5", Channel: "telegram", Code: "unknown_button", Message: "?"}))
	got := w.events(r.TaskID, event.VerdictRefused)
	if len(got) != 1 || got[0].Actor != "bob" || got[0].DelegationID != r.DelegationID || len(got[0].Data) > 2000 {
		t.Fatalf("events %+v", got)
	}
	for _, part := range []string{`"approval_id":"` + r.ID, `"channel":"telegram"`, `"code":"superseded"`, `"verdict":"approve"`} {
		if !strings.Contains(string(got[0].Data), part) {
			t.Errorf("no %s in %s", part, got[0].Data)
		}
	}
	if got := w.events(event.System, event.VerdictRefused); len(got) != 2 || got[0].Actor != "telegram:5" || strings.Contains(string(got[0].Data), "verdict") {
		t.Errorf("events of no task %+v", got)
	}
}

// Whatever channel it came through, a verdict that did not count is one line; pressing
// again within a minute is none, and another reason is another one.
func TestDecideRecordsWhatItRefuses(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Expires: time.Hour})
	r := w.asked()
	refusals := func() []string {
		var all []string
		for _, e := range w.events(r.TaskID, event.VerdictRefused) {
			var data struct{ Channel, Code, Verdict string }
			w.must(json.Unmarshal(e.Data, &data))
			all = append(all, strings.Join([]string{e.Actor, data.Channel, data.Code, data.Verdict}, " "))
		}
		return all
	}
	var want []string
	for i, channel := range []origin.Channel{"web", "api", "cli", "chat", "telegram"} {
		b := ballot(r, "ann", approval.Approve)
		b.Channel = channel
		for range 3 {
			w.refused(b, orchestrator.CodeFourEyes, "You asked for this task")
		}
		want = append(want, "ann "+string(channel)+" four_eyes approve")
		if got := refusals(); !slices.Equal(got, want) {
			t.Fatalf("step %d: %q, want %q", i, got, want)
		}
		w.must(w.g.Refused(w.ctx, approval.Refusal{RequestID: r.ID, Actor: "ann", Channel: channel, Verdict: approval.Approve, Code: orchestrator.CodeFourEyes, Message: "No."}))
		w.clock.step(time.Minute)
	}
	old := ballot(r, "bob", approval.Approve)
	old.Digest = id64("7")
	w.refused(old, orchestrator.CodeSuperseded, "")
	w.refused(ballot(r, "eve", approval.Approve), orchestrator.CodeNotAnApprover, "")
	w.decide(ballot(r, "bob", approval.Approve))
	w.refused(ballot(r, "bob", approval.Approve), orchestrator.CodeAlreadyDecided, "") // the same twice is no attempt
	w.refused(ballot(r, "cleo", approval.Reject), orchestrator.CodeAlreadyDecided, "")
	want = append(want, "bob web superseded approve", "eve web not_an_approver approve", "cleo web already_decided reject")
	if got := refusals(); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	malformed := ballot(r, "bob", "maybe")
	w.refused(malformed, orchestrator.CodeBadRequest, "")
	if got := refusals(); len(got) != len(want) {
		t.Fatalf("what is no verdict is in the history: %q", got)
	}
}
