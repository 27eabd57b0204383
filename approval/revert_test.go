package approval_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// undoing stands for the engine: it makes the task of a revert, with its request.
type undoing struct {
	w     *world
	calls int
	err   error
}

func (u *undoing) Revert(_ context.Context, requestID, _, requesterID, requester string, via origin.Origin) (orchestrator.Task, error) {
	u.calls++
	if u.err != nil {
		return orchestrator.Task{}, u.err
	}
	now := u.w.clock.now()
	task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now), RootID: orchestrator.NewID(orchestrator.DelegationPrefix, now), Agent: "coder",
		Text: "Revert", Repository: "app", Key: "revert:" + requestID, RequesterID: requesterID, Requester: requester, Via: via, RevertOf: requestID, CreatedAt: now}
	d := orchestrator.Delegation{ID: task.RootID, TaskID: task.ID, To: "coder", State: orchestrator.Checking, Attempt: 1, HopKey: "root", CreatedAt: now}
	task, _, err := u.w.db.NewTask(u.w.ctx, task, func(tx orchestrator.Tx) error { return tx.Insert(u.w.ctx, &d) })
	return task, err
}

// land records that the approved change of r has landed, as the engine does.
func (w *world) land(r approval.Request) {
	w.Helper()
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(w.ctx, r.DelegationID)
		if err != nil {
			return err
		}
		return errors.Join(tx.CloseRequest(w.ctx, d.ID, orchestrator.RequestLanded, id40("d")), orchestrator.Succeed(w.ctx, tx, d))
	}))
}

func TestRevert(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true})
	u := &undoing{w: w}
	w.g.SetReverter(u)
	r := w.asked()
	bob, eve := ballot(r, "bob", approval.Approve).Principal, ballot(r, "eve", approval.Approve).Principal
	if _, err := w.g.Revert(w.ctx, r.ID, bob); orchestrator.CodeOf(err) != orchestrator.CodeConflict {
		t.Fatalf("reverting what has not landed: %v", err)
	}
	w.decide(ballot(r, "bob", approval.Approve))
	w.land(r)
	w.expectStates(r.ID, approval.Landed, orchestrator.Completed)
	w.refused(ballot(r, "bob", approval.Withdraw), orchestrator.CodeAlreadyDecided, "Revert it instead")

	if _, err := w.g.Revert(w.ctx, r.ID, eve); orchestrator.CodeOf(err) != orchestrator.CodeForbidden {
		t.Fatalf("reverting as an auditor: %v", err)
	}
	u.err = orchestrator.Errorf(orchestrator.CodeConflict, "This can no longer be undone by itself.")
	if _, err := w.g.Revert(w.ctx, r.ID, bob); orchestrator.CodeOf(err) != orchestrator.CodeConflict {
		t.Fatalf("what cannot be undone: %v", err)
	}
	u.err = errors.New("the disk is gone") // it is not known whether there is a task
	if _, err := w.g.Revert(w.ctx, r.ID, bob); err == nil {
		t.Fatal("no error")
	}
	u.err = nil
	task, err := w.g.Revert(w.ctx, r.ID, ballot(r, "cleo", approval.Approve).Principal)
	w.must(err)
	if task.Requester != "bob" || w.request(r.ID).RevertedBy != task.ID {
		t.Fatalf("cleo finished what bob asked for: %+v, %s", task, w.request(r.ID).RevertedBy)
	}
	if _, err := w.g.Revert(w.ctx, r.ID, bob); orchestrator.CodeOf(err) != orchestrator.CodeConflict || !strings.Contains(err.Error(), task.ID) {
		t.Fatalf("twice: %v", err)
	}

	w.must(w.g.Ask(w.ctx, w.delegation(task.RootID), proposal("2")))
	undo := w.request(w.delegation(task.RootID).ApprovalID)
	if undo.RevertOf != r.ID || undo.Requester != "bob" {
		t.Fatalf("the revert's request: %+v", undo)
	}
	w.refused(ballot(undo, "bob", approval.Approve), orchestrator.CodeFourEyes, "another person")
	w.decide(ballot(undo, "cleo", approval.Approve))
	w.land(undo)
	for range 2 {
		w.must(w.g.Deliver(w.ctx, inboxChannel))
	}
	if got := w.request(r.ID); got.State != approval.Reverted || got.RevertedBy != task.ID {
		t.Errorf("after the revert has landed: %s by %s", got.State, got.RevertedBy)
	}
	if e := w.events(r.TaskID, event.PatchReverted); len(e) != 1 {
		t.Errorf("%d events", len(e))
	}
}

func TestTwoWhoRevertAtOnceMakeOneTask(t *testing.T) {
	w := newWorld(t, approval.Config{})
	u := &undoing{w: w}
	w.g.SetReverter(u)
	r := w.asked()
	w.decide(ballot(r, "bob", approval.Approve))
	w.land(r)
	elsewhere := w.other(w.request(r.ID))
	elsewhere.SetReverter(u)
	_, err := w.g.Revert(w.ctx, r.ID, ballot(r, "bob", approval.Approve).Principal)
	w.must(err)
	_, err = elsewhere.Revert(w.ctx, r.ID, ballot(r, "cleo", approval.Approve).Principal)
	if orchestrator.CodeOf(err) != orchestrator.CodeConflict || u.calls != 1 {
		t.Errorf("%d tasks asked for; the second person was told: %v", u.calls, err)
	}
}

func TestARevertThatWasRejectedMayBeAskedForAgain(t *testing.T) {
	w := newWorld(t, approval.Config{})
	w.g.SetReverter(&undoing{w: w})
	r := w.asked()
	bob, cleo := ballot(r, "bob", approval.Approve), ballot(r, "cleo", approval.Approve)
	w.decide(bob)
	w.land(r)
	first, err := w.g.Revert(w.ctx, r.ID, bob.Principal)
	w.must(err)
	w.must(w.g.Ask(w.ctx, w.delegation(first.RootID), proposal("2")))
	w.decide(ballot(w.request(w.delegation(first.RootID).ApprovalID), "cleo", approval.Reject))
	second, err := w.g.Revert(w.ctx, r.ID, cleo.Principal)
	w.must(err)
	if second.ID == first.ID || w.request(r.ID).RevertedBy != second.ID {
		t.Errorf("first %s, second %s, linked %s", first.ID, second.ID, w.request(r.ID).RevertedBy)
	}
}
