package approval_test

import (
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

// close ends the delegation of r, as the engine does when its work ends.
func (w *world) close(r approval.Request, end orchestrator.RequestEnd, commit string) approval.Request {
	w.Helper()
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error { return tx.CloseRequest(w.ctx, r.DelegationID, end, commit) }))
	return w.request(r.ID)
}

// What people have ended stays ended as they did, whatever becomes of the work; the end of the
// work ends the rest, once.
func TestTheEndOfTheWorkEndsWhatIsOpen(t *testing.T) {
	w := newWorld(t, approval.Config{})
	rejected := w.asked()
	w.decide(ballot(rejected, "bob", approval.Reject))
	if now := w.close(rejected, orchestrator.RequestLanded, id40("d")); now.State != approval.Rejected || now.Landed != "" {
		t.Errorf("a no became %s at %q", now.State, now.Landed)
	}
	changes := w.asked()
	w.decide(ballot(changes, "bob", approval.RequestChanges))
	if now := w.close(changes, orchestrator.RequestCancelled, ""); now.State != approval.Cancelled || now.Revision.State != approval.Cancelled {
		t.Errorf("what waits for a further revision became %s, revision %s", now.State, now.Revision.State)
	}
	yes := w.asked()
	w.decide(ballot(yes, "bob", approval.Approve))
	if now := w.close(yes, orchestrator.RequestLanded, id40("d")); now.State != approval.Landed || now.Landed != id40("d") {
		t.Errorf("a yes that landed is %s at %q", now.State, now.Landed)
	}
	if now := w.close(yes, orchestrator.RequestFailed, ""); now.State != approval.Landed || now.Landed != id40("d") {
		t.Errorf("what has landed became %s at %q", now.State, now.Landed)
	}
}

// The yes to a hand-over was to that: the failure of the work is no failure of the request.
func TestAHandoverKeepsItsYes(t *testing.T) {
	w := newWorld(t, approval.Config{})
	open := w.handedOn("Deploy", true)
	if now := w.close(open, orchestrator.RequestCancelled, ""); now.State != approval.Cancelled {
		t.Errorf("an open question became %s", now.State)
	}
	yes := w.handedOn("Deploy", true)
	w.decide(ballot(yes, "bob", approval.Approve))
	version := w.request(yes.ID).Version
	if now := w.close(yes, orchestrator.RequestFailed, ""); now.State != approval.Approved || now.Version != version {
		t.Errorf("a yes became %s, version %d after %d", now.State, now.Version, version)
	}
}
