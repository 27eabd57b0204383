package approval_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

func TestRequestChangesGivesTheNextRevisionOfTheSameRequest(t *testing.T) {
	w := newWorld(t, approval.Config{Expires: time.Hour})
	r := w.asked()
	b := ballot(r, "bob", approval.RequestChanges)
	b.Comments = []agent.LineComment{{Path: "upload/retry.go", Line: 42, Text: "needs ctx\x00 here?"}}
	w.decide(b)
	w.expectStates(r.ID, approval.ChangesRequested, orchestrator.Queued)
	want := &agent.Feedback{Comment: "Handle the timeout too.", Comments: []agent.LineComment{{Path: "upload/retry.go", Line: 42, Text: "needs ctx here?"}}, Revision: 1, Diff: "diff of revision 1\n"}
	if got := w.delegation(r.DelegationID).Work.Feedback; !reflect.DeepEqual(got, want) {
		t.Errorf("feedback %+v, want %+v", got, want)
	}
	if e := w.events(r.TaskID, event.ChangesRequested); len(e) != 1 || e[0].Actor != "bob" || !strings.Contains(string(e[0].Data), "needs ctx here?") {
		t.Errorf("events %+v", e)
	}
	w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeAlreadyDecided, "bob requested changes at 12:00 UTC on the web")

	w.clock.step(30 * time.Minute)
	d := w.rework(r.DelegationID)
	w.must(w.g.Ask(w.ctx, d, proposal("2")))
	next := w.request(r.ID)
	if next.State != approval.Pending || next.Revision.N != 2 || next.Revision.Previous != id40("1") || next.Revision.Digest != id64("2") || next.DecidedAt != nil {
		t.Fatalf("second revision: %+v", next)
	}
	if left := next.ExpiresAt.Sub(w.clock.now()); left < 59*time.Minute {
		t.Errorf("the deadline did not start anew: %s left", left)
	}
	if e := w.events(r.TaskID, event.Superseded); len(e) != 1 || !strings.Contains(string(e[0].Data), id64("1")) {
		t.Errorf("superseded: %+v", e)
	}
	old := ballot(r, "bob", approval.Approve)
	w.refused(old, orchestrator.CodeSuperseded, "Revision 2 replaced the one you read, revision 1. Since then: nothing in the files")
	w.decide(ballot(next, "bob", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
	revisions, err := w.db.Revisions(w.ctx, r.ID)
	w.must(err)
	if len(revisions) != 2 || revisions[0].State != approval.ChangesRequested || revisions[1].State != approval.Approved {
		t.Errorf("revisions: %+v", revisions)
	}
}

func TestAskingTwiceMakesNothingNew(t *testing.T) {
	w := newWorld(t, approval.Config{})
	d := w.checked()
	w.must(w.g.Ask(w.ctx, d, proposal("1")))
	w.must(w.g.Ask(w.ctx, d, proposal("1"))) // the worker crashed and did not learn of its success
	r := w.request(w.delegation(d.ID).ApprovalID)
	if e := w.events(r.TaskID, event.Requested); len(e) != 1 || r.Revision.N != 1 {
		t.Errorf("%d requests, revision %d", len(e), r.Revision.N)
	}
	if err := w.g.Ask(w.ctx, d, proposal("2")); !errors.Is(err, orchestrator.ErrLost) {
		t.Errorf("another tree of a delegation that waits: %v", err)
	}
	fresh := w.checked()
	fresh.Attempt++
	if err := w.g.Ask(w.ctx, fresh, proposal("1")); !errors.Is(err, orchestrator.ErrLost) {
		t.Errorf("an attempt that is not the row's: %v", err)
	}
}

func TestAStaleChangeIsAskedAgain(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	w.decide(ballot(r, "bob", approval.Approve))
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(w.ctx, r.DelegationID)
		if err != nil {
			return err
		}
		return errors.Join(tx.CloseRequest(w.ctx, d.ID, orchestrator.RequestStale, ""), orchestrator.RunAgain(w.ctx, tx, d, nil, "gatehouse", "main moved"))
	}))
	w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeStale, "main moved")
	w.must(w.g.Ask(w.ctx, w.rework(r.DelegationID), proposal("2")))
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
	w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeSuperseded, "Revision 2")
	next := w.request(r.ID)
	if n, err := w.g.Needs(w.ctx, next); err != nil || n.Have != 0 {
		t.Errorf("bob's yes to revision 1 still counts: %+v, %v", n, err)
	}
}

func TestACancelledTaskTakesItsRequestAlong(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	engine := orchestrator.New(orchestrator.Options{Store: w.db, Hub: w.db.Hub(), Now: w.clock.now}, orchestrator.Config{})
	_, err := engine.Cancel(w.ctx, r.TaskID, "ann")
	w.must(err)
	w.expectStates(r.ID, approval.Cancelled, orchestrator.Cancelled)
	w.refused(ballot(r, "bob", approval.Approve), orchestrator.CodeEnded, "its task ended before a decision")
}

func TestARuleWithNeedZeroPassesOnlyWhatIsPlain(t *testing.T) {
	rules := compiled(t, policy.RuleConfig{Name: "auto", When: "true", Need: need(0)})
	w := newWorld(t, approval.Config{Policy: rules, Expires: time.Hour})
	r := w.asked()
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
	if d := w.delegation(r.DelegationID); d.Work.Land.Approvers[0] != "rule:auto" || r.Decisions[0].User != "rule:auto" || r.Decisions[0].Verdict != approval.Approve {
		t.Errorf("decision %+v", r.Decisions)
	}
	if e := w.events(r.TaskID, event.Decided); len(e) != 1 || e[0].Actor != "rule:auto" {
		t.Errorf("events %+v", e)
	}
	w.refused(ballot(r, "bob", approval.Reject), orchestrator.CodeAlreadyDecided, "Rule auto approved this")

	warned, failed := proposal("2"), proposal("3")
	warned.Review.Warnings = []patch.Warning{{Code: "ci_file", Path: ".github/workflows/ci.yml"}}
	failed.Checks = []orchestrator.Check{{Command: "go test ./...", OK: false}}
	for _, p := range []orchestrator.Proposal{warned, failed} {
		d := w.checked()
		w.must(w.g.Ask(w.ctx, d, p))
		r := w.request(w.delegation(d.ID).ApprovalID)
		w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
		if r.Rule.Need != 1 || r.Revision.Notes[len(r.Revision.Notes)-1].Code != "rule_not_applied" {
			t.Errorf("rule %+v, notes %+v", r.Rule, r.Revision.Notes)
		}
	}
}

func TestADenyRuleRejects(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "frozen", When: `branch == "main"`, Deny: true})})
	r := w.asked()
	w.expectStates(r.ID, approval.Rejected, orchestrator.Rejected)
	if r.Decisions[0].User != "rule:frozen" || r.Decisions[0].Verdict != approval.Reject {
		t.Errorf("decision %+v", r.Decisions)
	}
	if d := w.delegation(r.DelegationID); d.Error == nil || !strings.Contains(d.Error.Message, `The rule "frozen" rejected the change`) {
		t.Errorf("error %+v", d.Error)
	}
}

// An agent that was asked for changes, and answers without one, leaves no question open:
// no revision follows.
func TestAnAnswerWithoutAChangeClosesWhatWasAsked(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	w.decide(ballot(r, "bob", approval.RequestChanges))
	d := w.rework(r.DelegationID)
	w.must(w.db.InTask(w.ctx, d.TaskID, func(tx orchestrator.Tx) error {
		row, err := tx.Delegation(w.ctx, d.ID)
		if err != nil {
			return err
		}
		was := row.Attempt
		row.State, row.Result = orchestrator.Running, &agent.Result{Text: "Nothing is left to change."}
		if err := tx.Move(w.ctx, row, orchestrator.Checking, was); err != nil {
			return err
		}
		return orchestrator.Succeed(w.ctx, tx, row)
	}))
	w.expectStates(r.ID, approval.Cancelled, orchestrator.Completed)
}

// What a person wrote is seen by another one, whatever rule would let an agent's pass.
func TestNoRulePassesWhatAPersonEdited(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "big", When: "patch.lines > 35", Need: need(1)}, policy.RuleConfig{Name: "small", When: "true", Need: need(0)})})
	r := w.asked()
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
		row, err := tx.Delegation(w.ctx, r.DelegationID)
		if err != nil {
			return err
		}
		row.State = orchestrator.Checking
		row.Work.Made = &orchestrator.Made{How: approval.MadeByEdit, From: 1, Editors: []orchestrator.Editor{{ID: "usr_bob", Name: "bob"}}}
		return tx.Move(w.ctx, row, orchestrator.AwaitingApproval, row.Attempt)
	}))
	p := proposal("2")
	p.Review = &patch.Review{Added: 1, Files: []patch.File{{Path: "upload/retry.go", Status: patch.Modified, Added: 1, NewMode: "100644"}}}
	w.must(w.g.Ask(w.ctx, w.delegation(r.DelegationID), p))
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
	if r = w.request(r.ID); r.Rule.Need != 1 || len(r.Revision.Notes) == 0 || r.Revision.Notes[len(r.Revision.Notes)-1].Code != "rule_not_applied" {
		t.Errorf("asked under %+v with %+v", r.Rule, r.Revision.Notes)
	}
	w.refused(ballot(r, "bob", approval.Approve), orchestrator.CodeFourEyes, "You edited this revision")
}
