package approval_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// Four eyes look at the whole lineage of a change; what somebody has edited they never
// approve themselves.
func TestFourEyesOverTheLineage(t *testing.T) {
	lineage := func(parts ...approval.Party) approval.Request {
		r := asks(1)
		r.Lineage = parts
		return r
	}
	asked := approval.Party{UserID: "usr_ann", User: "ann", Part: approval.AskedForIt}
	owned := approval.Party{UserID: "usr_bob", User: "bob", Part: approval.OwnsAgent, Agent: "coder"}
	edited := asks(1)
	edited.Revision.Editor = &approval.Party{UserID: "usr_cleo", User: "cleo", Part: approval.EditedIt}
	nobody := lineage(asked, owned)
	nobody.Revision.Editor = edited.Revision.Editor
	others := "so another person must approve it. Ask one of: "
	for name, c := range map[string]struct {
		off     bool
		r       approval.Request
		who     string
		message string
	}{
		"who asked":                         {r: lineage(asked, owned), who: "ann", message: "You asked for this task, " + others + "cleo."},
		"who owns an agent of the chain":    {r: lineage(asked, owned), who: "bob", message: "You own the agent coder, " + others + "cleo."},
		"an owner known by name alone":      {r: lineage(asked, approval.Party{User: "Bob", Part: approval.OwnsAgent, Agent: "kik"}), who: "bob", message: "You own the agent kik, " + others + "cleo."},
		"nobody else has a part":            {r: lineage(asked, owned), who: "cleo"},
		"a request of before it was kept":   {r: asks(1), who: "ann", message: "You asked for this task, " + others + "bob, cleo."},
		"who asked, without four eyes":      {off: true, r: lineage(asked, owned), who: "ann"},
		"who edited":                        {r: edited, who: "cleo", message: "You edited this revision, " + others + "bob."},
		"who edited, without four eyes too": {off: true, r: edited, who: "cleo", message: "You edited this revision, " + others + "ann, bob."},
		"everybody has a part": {r: nobody, who: "ann",
			message: `You asked for this task, so another person must approve it, and there is nobody else who can. Give another person the role approver, or change the rule "core".`},
	} {
		e := approval.NewElectorate(staff(), groups, !c.off, noon)
		p := people.As(user(c.who, people.Approver), nil)
		refused := e.May(p, c.r, approval.Approve)
		if (refused == nil) != (c.message == "") || (refused != nil && (refused.Code != orchestrator.CodeFourEyes || refused.Message != c.message)) {
			t.Errorf("%s: %v", name, refused)
		}
		for _, v := range []approval.Verdict{approval.Reject, approval.RequestChanges, approval.Edit} {
			if refused := e.May(p, c.r, v); refused != nil {
				t.Errorf("%s: may not %s: %v", name, v, refused)
			}
		}
	}
	e := approval.NewElectorate(staff(), groups, true, noon)
	want := `This needs 1 approver, but nobody can: ann asked for it, bob owns coder and cleo edited it. Give another person the role approver, or change the rule "core".`
	if got := e.TooFew(nobody); got != want {
		t.Errorf("too few: %s", got)
	}
	if got := e.Turn(nobody, "usr_bob"); got != "nobody" || !e.Stuck(nobody) {
		t.Errorf("turn: %s", got)
	}
	somebody := asks(1, "maintainers")
	called := staff()
	called[1].Name = "nobody"
	if e := approval.NewElectorate(called, map[string][]string{"maintainers": {"nobody"}}, true, noon); e.Stuck(somebody) {
		t.Errorf("a person named nobody counts as nobody: %q", e.Turn(somebody, "usr_cleo"))
	}
}

// The lineage is taken when people are asked: later configuration does not change it.
func TestTheLineageIsStoredWithTheRequest(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Agents: map[string]approval.AgentRule{"coder": {Owner: "Cleo"}, "kik": {Owner: "bob"}}})
	r := w.asked()
	want := []approval.Party{{UserID: "usr_ann", User: "ann", Part: approval.AskedForIt}, {UserID: "usr_cleo", User: "Cleo", Part: approval.OwnsAgent, Agent: "coder"}}
	if !reflect.DeepEqual(r.Lineage, want) {
		t.Fatalf("lineage %+v, want %+v", r.Lineage, want)
	}
	w.g.SetConfig(approval.Config{FourEyes: true, Groups: groups})
	w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeFourEyes, "You own the agent coder, so another person must approve it. Ask one of: bob.")
	w.decide(ballot(r, "bob", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}

// Parties only grow: whoever had a part in a revision keeps it in the next one and in what undoes
// the change, also where the engine has recorded no owner and the configuration names another.
func TestPartiesStayWithTheirRequest(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Agents: map[string]approval.AgentRule{"coder": {Owner: "cleo"}}})
	cleo := approval.Party{UserID: "usr_cleo", User: "cleo", Part: approval.OwnsAgent, Agent: "coder"}
	r := w.asked()
	w.g.SetConfig(approval.Config{FourEyes: true, Groups: groups, Agents: map[string]approval.AgentRule{"coder": {Owner: "bob"}}})
	change := ballot(r, "cleo", approval.RequestChanges)
	change.Comment = "More."
	w.decide(change)
	w.must(w.g.Ask(w.ctx, w.rework(r.DelegationID), proposal("2")))
	r = w.request(r.ID)
	bob := approval.Party{UserID: "usr_bob", User: "bob", Part: approval.OwnsAgent, Agent: "coder"}
	if want := []approval.Party{{UserID: "usr_ann", User: "ann", Part: approval.AskedForIt}, cleo, bob}; !reflect.DeepEqual(r.Lineage, want) {
		t.Errorf("revision %d: %+v, want %+v", r.Revision.N, r.Lineage, want)
	}
	w.g.SetConfig(approval.Config{FourEyes: true, Groups: groups})
	undo := w.checked()
	undo.Work.Reverts = r.ID
	w.must(w.g.Ask(w.ctx, undo, proposal("3")))
	got := w.request(w.delegation(undo.ID).ApprovalID).Lineage
	if want := []approval.Party{{UserID: "usr_ann", User: "ann", Part: approval.AskedForIt}, cleo, bob}; !reflect.DeepEqual(got, want) {
		t.Errorf("what undoes it: %+v, want %+v", got, want)
	}
}

// A token asks for its owner: who sent the task with it is who asked.
func TestTheOwnerOfATokenDoesNotApproveWhatItAskedFor(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true})
	r := w.asked() // ann's, whichever way it came
	b := ballot(r, "ann", approval.Approve)
	b.Principal.TokenID, b.Channel = "tok_1", "api"
	w.refused(b, orchestrator.CodeFourEyes, "You asked for this task")
	b = ballot(r, "ann", approval.Approve)
	b.Channel = "telegram"
	w.refused(b, orchestrator.CodeFourEyes, "You asked for this task")
	w.decide(ballot(r, "bob", approval.Approve))
}

// A rule that names no groups asks the approvers of the repository, where it has some.
func TestTheApproversOfARepository(t *testing.T) {
	for name, c := range map[string]struct {
		rule      []policy.RuleConfig
		approvers map[string][]string
		from      []string
		cleo      bool
	}{
		"of this one":         {approvers: map[string][]string{"app": {"maintainers"}}, from: []string{"maintainers"}},
		"of another one":      {approvers: map[string][]string{"site": {"maintainers"}}, from: []string{}, cleo: true},
		"the rule goes first": {rule: []policy.RuleConfig{{Name: "r", When: "true", From: []string{"maintainers"}}}, approvers: map[string][]string{"app": {"gone"}}, from: []string{"maintainers"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approval.Config{Policy: compiled(t, c.rule...), Approvers: c.approvers})
			r := w.asked()
			if !reflect.DeepEqual(r.Rule.From, c.from) {
				t.Errorf("from %v, want %v", r.Rule.From, c.from)
			}
			if !c.cleo {
				w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeNotAnApprover, "Deciding needs: maintainers (ann, bob).")
				return
			}
			w.decide(ballot(r, "cleo", approval.Approve))
		})
	}
}

// An agent's mode says where a yes is taken; a no is taken everywhere, and so is every
// verdict on the page.
func TestTheModeOfAnAgent(t *testing.T) {
	for mode, c := range map[string]struct {
		yes []string
		no  map[string]string
	}{
		"any":      {yes: []string{"web", "chat", "telegram", "cli", "api"}},
		"web":      {yes: []string{"web", "cli", "api"}, no: map[string]string{"chat": "on the web.", "telegram": "on the web."}},
		"chat":     {yes: []string{"web", "chat"}, no: map[string]string{"telegram": "on the web or in the chat."}},
		"telegram": {yes: []string{"web", "telegram"}, no: map[string]string{"chat": "on the web or on Telegram."}},
	} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, approval.Config{Agents: map[string]approval.AgentRule{"coder": {Mode: mode}}})
			for channel, says := range c.no {
				r := w.asked()
				b := ballot(r, "bob", approval.Approve)
				b.Channel = origin.Channel(channel)
				w.refused(b, orchestrator.CodeForbidden, "coder's changes are approved "+says)
				b.Verdict = approval.Reject
				w.decide(b)
			}
			for _, channel := range c.yes {
				b := ballot(w.asked(), "bob", approval.Approve)
				b.Channel = origin.Channel(channel)
				w.decide(b)
			}
		})
	}
}

// N of M with two groups: whoever is in either counts, each person once, on whatever
// channels they speak.
func TestTwoOfTwoGroups(t *testing.T) {
	both := map[string][]string{"maintainers": {"ann", "bob"}, "owners": {"bob", "cleo"}}
	need := 2
	rules, problems := policy.CompileRules([]policy.RuleConfig{{Name: "core", When: "true", Need: &need, From: []string{"maintainers", "owners"}}}, both)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := newWorld(t, approval.Config{Policy: rules, Groups: both, FourEyes: true})
	r := w.asked()
	n, err := w.g.Needs(w.ctx, r)
	w.must(err)
	if strings.Join(approval.Names(n.Missing), " ") != "bob cleo" {
		t.Errorf("missing %v", n.Missing)
	}
	w.decide(ballot(r, "bob", approval.Approve)) // in both groups, and one voice
	again := ballot(r, "bob", approval.Approve)
	again.Channel = "telegram"
	w.refused(again, orchestrator.CodeAlreadyDecided, "You (bob) approved this at")
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
	w.refused(ballot(r, "ann", approval.Approve), orchestrator.CodeFourEyes, "Ask one of: cleo.")
	w.decide(ballot(r, "cleo", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}

// Rows of every version read as what was meant, and are written so that an older program finds
// the words that it looks for.
func TestAPartyIsReadFromRowsOfEveryVersion(t *testing.T) {
	t.Parallel()
	part := func(p approval.Part) approval.Party { return approval.Party{UserID: "usr_ann", User: "ann", Part: p} }
	ofAgent := func(p approval.Part) approval.Party {
		return approval.Party{UserID: "usr_ann", User: "ann", Part: p, Agent: "coder"}
	}
	hook := part(approval.OwnsTrigger)
	hook.Trigger = "ci-failed"
	for why, want := range map[string]approval.Party{
		"":             part(""),
		"asked for it": part(approval.AskedForIt),
		"asked for the task that it goes on from": part(approval.AskedBefore),
		"asked for the change that it undoes":     part(approval.AskedUndone),
		"owns coder":                              ofAgent(approval.OwnsAgent),
		"owns coder, which worked on it":          ofAgent(approval.OwnsWorker),
		"owns the trigger ci-failed":              hook,
		"edited it":                               part(approval.EditedIt),
		"edited an earlier revision":              part(approval.EditedEarlier),
		"edited the change that it undoes":        part(approval.EditedUndone),
	} {
		var old, again approval.Party
		err := json.Unmarshal([]byte(`{"user_id":"usr_ann","user":"ann","why":"`+why+`"}`), &old)
		if err != nil || old != want || old.Why() != why {
			t.Errorf("an old row with %q reads as %+v, %q: %v", why, old, old.Why(), err)
		}
		row, err := json.Marshal(want)
		if err != nil || !strings.Contains(string(row), `"why":"`+why+`"`) {
			t.Errorf("%+v is written as %s: %v", want, row, err)
		}
		if err := json.Unmarshal(row, &again); err != nil || again != want {
			t.Errorf("%s reads as %+v: %v", row, again, err)
		}
	}
}
