package web_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// moving is git of which the branch moves into the change when a test says so.
type moving struct{ moved atomic.Bool }

func (m *moving) Heads(context.Context, string, []string) (map[string]string, error) {
	return nil, nil // nothing is looked at but by who reads and decides
}

func (m *moving) Since(ctx context.Context, v approval.Revision, repository string) (approval.Movement, error) {
	return m.Moved(ctx, v, repository)
}

func (m *moving) Moved(context.Context, approval.Revision, string) (approval.Movement, error) {
	if !m.moved.Load() {
		return approval.Movement{}, nil
	}
	return approval.Movement{Head: "4be1f02", Commits: 1, Fits: patch.Carried{Moved: []string{"retry.go"}}}, nil
}

// Main changes while somebody reads and approves: the answer is a notice of the warning kind
// that says that nothing landed, neither a green one nor an error. Who comes then is offered
// the next revision in place of a yes.
func TestAYesThatLandsNothingIsAnsweredInAmber(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	git := &moving{}
	h.gate.SetBranches(git)
	r, other := h.request(dora), h.request(dora)
	p := h.seat(browsertest.New(t), bob)
	p.Open(h.url + "/approvals/" + r.ID)
	p.Until(`!document.querySelector('#verdict [data-unviewed]')`)
	git.moved.Store(true)
	p.Click("button", "Approve")
	p.WaitText("Nothing landed: main changed retry.go meanwhile. Revision 2 asks again.")
	p.Until(`document.querySelector('#missed.callout.is-wait[role=status]') && !document.querySelector('.flash, [role=alert]')`)
	p.WaitText("bob approved on the web · nothing landed")
	p.Open(h.url + "/approvals/" + other.ID)
	p.Wait("button", "Make revision 2 on today's main")
	if p.Has("button", "Approve") {
		t.Error("there is an Approve, too")
	}
	if os.Getenv("GATEHOUSE_SHOTS") == "" {
		return
	}
	h.look(p, stop{path: "/approvals/" + r.ID}, "missed-wide")
	p.Dark().Phone()
	for name, path := range map[string]string{"missed": "/approvals/" + r.ID, "overtaken": "/approvals/" + other.ID, "overtaken-row": "/approvals?state=all", "overtaken-chat": "/chat?request=" + other.ID, "missed-chat": "/chat?request=" + r.ID} {
		h.look(p, stop{path: path}, name+"-phone-dark")
	}
	p.Light().Desktop()
	for name, path := range map[string]string{"overtaken": "/approvals/" + other.ID, "overtaken-row": "/approvals?state=all", "overtaken-chat": "/chat?request=" + other.ID} {
		h.look(p, stop{path: path}, name+"-wide")
	}
	h.user("ann", people.Auditor)
	a := h.seat(browsertest.New(t), userOf(h, "ann"))
	h.look(a, stop{path: "/audit"}, "read-audit-wide")
	a.Dark().Phone()
	h.look(a, stop{path: "/audit"}, "read-audit-phone-dark")
}
