package approval_test

import (
	"context"
	"slices"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// without is the staff after somebody was changed.
func without(name string, change func(*people.User)) []people.User {
	all := staff()
	for i := range all {
		if all[i].Name == name {
			change(&all[i])
		}
	}
	return all
}

// Somebody's account is closed after their yes and opened again after the next one's. Their yes
// was ended when the next one was counted, so that the request has never all its yeses and
// lands on none of them; they say it again.
func TestWhoeverIsGivenTheRightBackSaysYesAgain(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "two", When: "true", Need: need(2)})})
	r := w.asked()
	w.decide(ballot(r, "ann", approval.Approve))
	w.staffed(without("ann", func(u *people.User) { u.Disabled = true }))
	w.decide(ballot(r, "bob", approval.Approve))
	w.staffed(staff())
	n, err := w.g.Needs(w.ctx, w.request(r.ID))
	if w.must(err); n.Have != 1 || !slices.Contains(approval.Names(n.Missing), "ann") {
		t.Errorf("needs %+v", n)
	}
	after := w.decide(ballot(r, "ann", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
	if got := w.delegation(r.DelegationID).Work.Land.Approvers; !slices.Equal(got, []string{"bob", "ann"}) {
		t.Errorf("approved by %v", got)
	}
	ended := func(d approval.Decision) bool {
		return d.Ends(after.Decisions[0]) && d.Comment == "ann is disabled" && d.User == "gatehouse"
	}
	if n := len(after.Decisions); n != 4 || !slices.ContainsFunc(after.Decisions, ended) {
		t.Errorf("%d decisions: %+v", n, after.Decisions)
	}
}

// Of two yeses the first is that of an account that was closed meanwhile: the change does
// not land on it, and says so.
func TestAYesOfSomebodyWhoLostTheRightDoesNotCount(t *testing.T) {
	for what, change := range map[string]func(*people.User){
		"disabled":    func(u *people.User) { u.Disabled = true },
		"no approver": func(u *people.User) { u.Roles = []people.Role{people.Operator} },
	} {
		w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "two", When: "true", Need: need(2)})})
		r := w.asked()
		w.decide(ballot(r, "ann", approval.Approve))
		w.staffed(without("ann", change))
		after := w.decide(ballot(r, "bob", approval.Approve))
		w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
		n, err := w.g.Needs(w.ctx, after)
		if w.must(err); n.Have != 1 || !slices.Contains(approval.Names(n.Missing), "cleo") || slices.Contains(approval.Names(n.Missing), "ann") {
			t.Errorf("%s: needs %+v", what, n)
		}
		w.decide(ballot(r, "cleo", approval.Approve))
		w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
		if got := w.delegation(r.DelegationID).Work.Land.Approvers; !slices.Equal(got, []string{"bob", "cleo"}) {
			t.Errorf("%s: approved by %v", what, got)
		}
	}
}

// Of two of a group the first has left it meanwhile.
func TestAYesOfSomebodyWhoLeftTheGroupDoesNotCount(t *testing.T) {
	rule := policy.RuleConfig{Name: "core", When: "true", Need: need(2), From: []string{"maintainers"}}
	w := newWorld(t, approval.Config{Policy: compiled(t, rule)})
	r := w.asked()
	w.decide(ballot(r, "ann", approval.Approve))
	c := w.g.Config()
	c.Groups = map[string][]string{"maintainers": {"bob", "cleo"}}
	w.g.SetConfig(c)
	w.decide(ballot(r, "bob", approval.Approve))
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
	w.decide(ballot(r, "cleo", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}

// The deputy who spoke for ann is gone, so her seat is free, and her own yes takes it.
func TestTheSeatOfADeputyWhoLeftIsFree(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "core", When: "true", Need: need(2), From: []string{"maintainers"}})})
	w.staffed(away("ann>cleo"))
	r := w.asked()
	w.decide(ballot(r, "cleo", approval.Approve))
	w.staffed(without("cleo", func(u *people.User) { u.Disabled = true }))
	w.decide(ballot(r, "ann", approval.Approve))
	w.decide(ballot(r, "bob", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}

// The session was read before the role went: what counts is who they are now.
func TestWhoeverLostTheRoleASecondAgoDecidesNothing(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	early := ballot(r, "bob", approval.Approve)
	w.staffed(without("bob", func(u *people.User) { u.Roles = nil }))
	for _, v := range []approval.Verdict{approval.Approve, approval.Reject} {
		early.Verdict = v
		w.refused(early, orchestrator.CodeNotAnApprover, "Deciding needs the role approver")
	}
}

// slow makes trees, and while it does something happens.
type slow struct {
	approval.Reviser
	meanwhile func()
}

func (s slow) EditFiles(_ context.Context, _ string, o orchestrator.Order, _ []patch.FileEdit, _, _ string) (orchestrator.Revised, error) {
	s.meanwhile()
	return orchestrator.Revised{From: o.Tree, Tree: id40("9"), Digest: id64("9")}, nil
}

// changing is everybody there is, who may change.
type changing struct{ now *[]people.User }

func (c changing) Users(context.Context) ([]people.User, error) { return *c.now, nil }

func TestTheRightIsLookedUpAgainAfterGit(t *testing.T) {
	w := newWorld(t, approval.Config{})
	everybody := staff()
	w.g = approval.New(approval.Options{Store: w.db, Users: changing{&everybody}, Now: w.clock.now}, w.g.Config())
	w.g.SetReviser(slow{meanwhile: func() { everybody = without("bob", func(u *people.User) { u.Disabled = true }) }})
	r := w.asked()
	b := ballot(r, "bob", approval.Edit)
	b.Edits = []patch.FileEdit{{Path: "a.txt", Text: "x"}}
	w.refused(b, orchestrator.CodeNotAnApprover, "Deciding needs the role approver")
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
}

// An agent that was asked for changes makes the same tree again. Its digest is the same,
// but what was shown as revision 1 is no longer asked.
func TestTheSameTreeAgainIsAnotherRevision(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	first := ballot(r, "bob", approval.Approve)
	first.Revision = 1
	w.decide(ballot(r, "cleo", approval.RequestChanges))
	d := w.rework(r.DelegationID)
	w.must(w.g.Ask(w.ctx, d, proposal("1")))
	r = w.request(r.ID)
	if r.Revision.N != 2 || r.Revision.Digest != first.Digest {
		t.Fatalf("revision %+v", r.Revision)
	}
	w.refused(first, orchestrator.CodeSuperseded, "Revision 2 replaced the one you read")
	first.Revision = 2
	w.decide(first)
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}
