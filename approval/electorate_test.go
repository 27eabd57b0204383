package approval_test

import (
	"reflect"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

func user(name string, roles ...people.Role) people.User {
	return people.User{ID: "usr_" + name, Name: name, Roles: roles}
}

// staff is everybody in these tests: eve may only look, gil has left.
func staff() []people.User {
	gil := user("gil", people.Approver)
	gil.Disabled = true
	return []people.User{
		user("ann", people.Approver, people.Operator), user("bob", people.Approver), user("cleo", people.Approver, people.Admin),
		user("dora", people.Operator), user("eve", people.Auditor), user("finn", people.Admin), gil,
	}
}

var groups = map[string][]string{"maintainers": {"ann", "bob", "gil"}, "gone": {"gil"}}

// asks is a pending request of ann's that wants n yeses.
func asks(n int, from ...string) approval.Request {
	return approval.Request{ID: "apr_1", State: approval.Pending, RequesterID: "usr_ann", Requester: "ann",
		Rule: policy.Rule{Name: "core", Need: n, From: from}, Revision: approval.Revision{N: 2}}
}

func said(name string, v approval.Verdict, revision int) approval.Decision {
	return approval.Decision{User: name, UserID: "usr_" + name, Verdict: v, Revision: revision}
}

func TestWhoseTurnItIs(t *testing.T) {
	for name, c := range map[string]struct {
		fourEyes      bool
		r             approval.Request
		said          []approval.Decision
		missing       []string
		have          int
		bobSees, tooo string
	}{
		"anyone":                        {r: asks(1), missing: []string{"ann", "bob", "cleo"}, bobSees: "you, ann or cleo"},
		"four eyes leave the asker out": {fourEyes: true, r: asks(1), missing: []string{"bob", "cleo"}, bobSees: "you or cleo"},
		"one of a group":                {r: asks(1, "maintainers"), missing: []string{"ann", "bob"}, bobSees: "you or ann"},
		"too few: group of two, one asked": {fourEyes: true, r: asks(2, "maintainers"), missing: []string{"bob"}, bobSees: "you",
			tooo: `This needs 2 of maintainers, but only bob can: ann asked for it. Add a person to maintainers, or change the rule "core".`},
		"too few still after the one yes": {fourEyes: true, r: asks(2, "maintainers"), said: []approval.Decision{said("bob", approval.Approve, 2)}, have: 1,
			missing: []string{}, bobSees: "nobody",
			tooo: `This needs 2 of maintainers, but only bob can: ann asked for it. Add a person to maintainers, or change the rule "core".`},
		"everybody has left": {r: asks(1, "gone"), missing: []string{}, bobSees: "nobody",
			tooo: `This needs 1 of gone, but nobody can. Add a person to gone, or change the rule "core".`},
		"more than there are": {r: asks(4), missing: []string{"ann", "bob", "cleo"}, bobSees: "you, ann or cleo",
			tooo: `This needs 4 approvers, but only ann, bob and cleo can. Give another person the role approver, or change the rule "core".`},
		"one yes of two": {r: asks(2), said: []approval.Decision{said("bob", approval.Approve, 2)}, have: 1, missing: []string{"ann", "cleo"}, bobSees: "ann or cleo"},
		"a yes to the revision before is dead": {r: asks(2), said: []approval.Decision{said("bob", approval.Approve, 1)},
			missing: []string{"ann", "bob", "cleo"}, bobSees: "you, ann or cleo"},
		"a yes that was withdrawn": {r: asks(2), said: []approval.Decision{said("bob", approval.Approve, 2), said("bob", approval.Withdraw, 2)},
			missing: []string{"ann", "bob", "cleo"}, bobSees: "you, ann or cleo"},
		"the same person twice": {r: asks(2), said: []approval.Decision{said("bob", approval.Approve, 2), said("bob", approval.Approve, 2)}, have: 1,
			missing: []string{"ann", "cleo"}, bobSees: "ann or cleo"},
	} {
		e := approval.NewElectorate(staff(), groups, c.fourEyes, noon)
		c.r.Decisions = c.said
		want := approval.Needs{Count: c.r.Rule.Need, Have: c.have, From: append([]string{}, c.r.Rule.From...), Missing: []approval.Voter{}}
		for _, name := range c.missing {
			want.Missing = append(want.Missing, approval.Voter{Name: name})
		}
		if got := e.Needs(c.r); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: needs %+v, want %+v", name, got, want)
		}
		if got := e.Turn(c.r, "usr_bob"); got != c.bobSees {
			t.Errorf("%s: bob sees %q, want %q", name, got, c.bobSees)
		}
		if got := e.TooFew(c.r); got != c.tooo {
			t.Errorf("%s: too few %q, want %q", name, got, c.tooo)
		}
	}
}

// Who asked for the task may answer what its agents ask, whoever decides on their work: a
// question has too few people only where they may not either.
func TestAQuestionWaitsForWhoAskedForTheTask(t *testing.T) {
	ask := func(requester string) approval.Request {
		r := asks(1, "gone")
		r.Kind, r.Question, r.RequesterID, r.Requester = approval.Question, &agent.Question{Text: "Which colour?"}, "usr_"+requester, requester
		r.Rule.Name = approval.AskPerson
		return r
	}
	e := approval.NewElectorate(staff(), groups, true, noon)
	if r := ask("dora"); e.TooFew(r) != "" || e.Stuck(r) || e.Turn(r, "usr_bob") != "dora" || e.Turn(r, "usr_dora") != "you" || !reflect.DeepEqual(approval.Names(e.Needs(r).Missing), []string{"dora"}) {
		t.Errorf("dora's own: too few %q, stuck %v, turn %q, needs %+v", e.TooFew(r), e.Stuck(r), e.Turn(r, "usr_bob"), e.Needs(r))
	}
	r := ask("eve") // who may only look by now
	if want := "This needs an answer, but nobody can. Give eve the role operator again, or another person the role approver."; e.TooFew(r) != want || !e.Stuck(r) {
		t.Errorf("eve's: %q, stuck %v", e.TooFew(r), e.Stuck(r))
	}
	if refused := e.May(people.As(user("eve", people.Auditor), nil), r, approval.Respond); refused == nil {
		t.Error("eve may answer")
	}
}

func TestADecidedRequestIsNobodysTurn(t *testing.T) {
	r := asks(3, "gone")
	r.State = approval.Landed
	e := approval.NewElectorate(staff(), groups, true, noon)
	if e.Turn(r, "usr_bob") != "" || e.TooFew(r) != "" || len(e.Needs(r).Missing) != 0 {
		t.Errorf("turn %q, too few %q, needs %+v", e.Turn(r, "usr_bob"), e.TooFew(r), e.Needs(r))
	}
}

func TestWhoMayDecide(t *testing.T) {
	disabled := staff()[6]
	run := people.Principal{Run: &people.Run{Agent: "coder"}}
	cut := people.As(user("bob", people.Approver), []people.Scope{people.ApprovalsRead})
	as := func(name string, roles ...people.Role) people.Principal { return people.As(user(name, roles...), nil) }
	for name, c := range map[string]struct {
		fourEyes bool
		p        people.Principal
		r        approval.Request
		v        approval.Verdict
		code     string
		message  string
	}{
		"an approver":                      {p: as("bob", people.Approver), r: asks(1), v: approval.Approve},
		"the asker without four eyes":      {p: as("ann", people.Approver), r: asks(1), v: approval.Approve},
		"the asker may reject":             {fourEyes: true, p: as("ann", people.Approver), r: asks(1), v: approval.Reject},
		"the asker may ask for changes":    {fourEyes: true, p: as("ann", people.Approver), r: asks(1), v: approval.RequestChanges},
		"the asker with four eyes":         {fourEyes: true, p: as("ann", people.Approver), r: asks(1), v: approval.Approve, code: orchestrator.CodeFourEyes, message: "You asked for this task, so another person must approve it. Ask one of: bob, cleo."},
		"the asker when nobody else can":   {fourEyes: true, p: as("ann", people.Approver), r: asks(1, "maintainers", "gone"), v: approval.Approve, code: orchestrator.CodeFourEyes, message: "You asked for this task, so another person must approve it. Ask one of: bob."},
		"an admin is no approver":          {p: as("finn", people.Admin), r: asks(1), v: approval.Approve, code: orchestrator.CodeNotAnApprover, message: "You can read this request. Deciding needs the role approver: ann, bob, cleo."},
		"an admin may not reject either":   {p: as("finn", people.Admin), r: asks(1), v: approval.Reject, code: orchestrator.CodeNotAnApprover, message: "You can read this request. Deciding needs the role approver: ann, bob, cleo."},
		"an approver outside of the group": {p: as("cleo", people.Approver), r: asks(1, "maintainers"), v: approval.Approve, code: orchestrator.CodeNotAnApprover, message: "You can read this request. Deciding needs: maintainers (ann, bob)."},
		"one who has left":                 {p: people.As(disabled, nil), r: asks(1), v: approval.Approve, code: orchestrator.CodeNotAnApprover, message: "You can read this request. Deciding needs the role approver: ann, bob, cleo."},
		"a token without the scope":        {p: cut, r: asks(1), v: approval.Approve, code: orchestrator.CodeForbidden, message: "This token may not decide: it has no scope approvals:decide. Use another token, or decide on the page."},
		"an agent":                         {p: run, r: asks(1), v: approval.Approve, code: orchestrator.CodeForbidden, message: "An agent cannot decide. People do: ann, bob, cleo."},
		"nobody":                           {r: asks(1), v: approval.Approve, code: orchestrator.CodeNotAnApprover, message: "You can read this request. Deciding needs the role approver: ann, bob, cleo."},
	} {
		refused := approval.NewElectorate(staff(), groups, c.fourEyes, noon).May(c.p, c.r, c.v)
		switch {
		case c.code == "" && refused != nil:
			t.Errorf("%s: refused: %v", name, refused)
		case c.code != "" && refused == nil:
			t.Errorf("%s: allowed", name)
		case c.code != "" && (refused.Code != c.code || refused.Message != c.message):
			t.Errorf("%s: %s %q", name, refused.Code, refused.Message)
		}
	}
}

func TestRisk(t *testing.T) {
	warn := func(codes ...string) (w []patch.Warning) {
		for _, c := range codes {
			w = append(w, patch.Warning{Code: c})
		}
		return w
	}
	for name, c := range map[string]struct {
		v    approval.Revision
		want approval.Risk
	}{
		"nothing":           {approval.Revision{Notes: []patch.Note{{Code: "no_sandbox"}}, Checks: []orchestrator.Check{{OK: true}}}, approval.Risk{Level: approval.Plain, Reasons: []string{}}},
		"warnings":          {approval.Revision{Warnings: warn("ci_file", "ci_file", "bidi")}, approval.Risk{Level: approval.Careful, Reasons: []string{"ci_file", "bidi"}}},
		"a failed check":    {approval.Revision{Checks: []orchestrator.Check{{OK: true}, {OK: false}}}, approval.Risk{Level: approval.Careful, Reasons: []string{"checks_failed"}}},
		"said twice":        {approval.Revision{Warnings: warn("checks_failed"), Checks: []orchestrator.Check{{OK: false}}}, approval.Risk{Level: approval.Careful, Reasons: []string{"checks_failed"}}},
		"as long as can be": {approval.Revision{Added: approval.CutLines}, approval.Risk{Level: approval.Plain, Reasons: []string{}}},
		"too long":          {approval.Revision{Added: approval.CutLines, Removed: 1}, approval.Risk{Level: approval.Careful, Reasons: []string{"diff_cut"}}},
	} {
		if got := approval.RiskOf(approval.Request{Revision: c.v}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
