package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// handovers compiles rules about hand-overs against the groups of these tests.
func handovers(t *testing.T, rules ...policy.RuleConfig) *policy.HandoverPolicy {
	t.Helper()
	p, problems := policy.CompileHandovers(rules, groups)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

// handedOn makes a task of ann's in which kik wants to hand a text to coder, and asks.
func (w *world) handedOn(text string, first bool) approval.Request {
	w.Helper()
	now := w.clock.now()
	task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now), RootID: orchestrator.NewID(orchestrator.DelegationPrefix, now),
		Agent: "kik", Text: "Plan", Repository: "app", RequesterID: "usr_ann", Requester: "ann", Via: origin.From(origin.Web), CreatedAt: now}
	root := orchestrator.Delegation{ID: task.RootID, TaskID: task.ID, To: "kik", Text: task.Text, State: orchestrator.Waiting, Attempt: 1,
		HopKey: "root", Repository: "app", Requester: "ann", CreatedAt: now, Since: now, OpenChildren: 1}
	child := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, now), TaskID: task.ID, ParentID: root.ID, From: "kik", To: "coder", Text: text,
		State: orchestrator.AwaitingApproval, Depth: 1, Chain: chain.New(3).With(chain.Step{From: "kik", To: "coder", Task: text}), HopKey: "one",
		Repository: "app", Requester: "ann", CreatedAt: now, Since: now, ApprovalID: orchestrator.NewID(orchestrator.RequestPrefix, now)}
	h, err := w.g.Handovers(w.ctx, first)
	w.must(err)
	_, _, err = w.db.NewTask(w.ctx, task, func(tx orchestrator.Tx) error {
		if err := tx.Insert(w.ctx, &root); err != nil {
			return err
		}
		if err := tx.Insert(w.ctx, &child); err != nil {
			return err
		}
		return h.Ask(w.ctx, tx, &child, orchestrator.Handed{HandoverQuestion: orchestrator.HandoverQuestion{From: "kik", To: "coder", Text: text}}, first)
	})
	w.must(err)
	return w.request(child.ApprovalID)
}

// H18: which hand-overs people are asked about. The first rule that matches decides; no
// rule passes an agent that wants a person asked, and one that breaks passes nothing.
func TestRulesAboutHandovers(t *testing.T) {
	broken := policy.RuleConfig{Name: "broken", When: "chain[7] == to", Need: need(0)}
	for name, c := range map[string]struct {
		rules []policy.RuleConfig
		text  string
		first bool
		asks  string
		rule  string
		deny  bool
	}{
		"no rules":                    {nil, "x", false, "", "", false},
		"ask_first":                   {nil, "x", true, "1 of all approvers", policy.AskFirst, false},
		"a rule asks":                 {[]policy.RuleConfig{{Name: "a", When: `to == "coder"`, Need: need(2), From: []string{"maintainers"}}}, "x", false, "2 of maintainers", "a", false},
		"one that does not match":     {[]policy.RuleConfig{{Name: "a", When: `to == "ops"`}}, "x", false, "", "", false},
		"the first passes":            {[]policy.RuleConfig{{Name: "p", When: `from == "kik"`, Need: need(0)}, {Name: "a", When: "true"}}, "x", false, "", "p", false},
		"none passes ask_first":       {[]policy.RuleConfig{{Name: "p", When: "true", Need: need(0)}}, "x", true, "1 of all approvers", policy.AskFirst, false},
		"a rule says whom, ask_first": {[]policy.RuleConfig{{Name: "a", When: "depth == 1", From: []string{"maintainers"}}}, "x", true, "1 of maintainers", "a", false},
		"deny":                        {[]policy.RuleConfig{{Name: "d", When: `text contains "prod"`, Deny: true}}, "to prod", true, "", "d", true},
		"chain, requester and hour":   {[]policy.RuleConfig{{Name: "a", When: `"kik" in chain && requester == "ann" && hour == 12 && weekday == "saturday" && repository == "app" && complexity == ""`}}, "x", false, "1 of all approvers", "a", false},
		"broken":                      {[]policy.RuleConfig{broken, {Name: "p", When: "true", Need: need(0)}}, "x", false, "1 of all approvers", policy.AskFirst, false},
		"too many steps":              {[]policy.RuleConfig{{Name: "slow", When: `any(split(text, ""), let a = #; any(split(text, ""), # == a + "x"))`, Need: need(0)}}, strings.Repeat("y", 200_000), false, "1 of all approvers", policy.AskFirst, false},
	} {
		w := newWorld(t, approval.Config{Handovers: handovers(t, c.rules...)})
		h, err := w.g.Handovers(w.ctx, c.first)
		w.must(err)
		if h == nil {
			if c.asks != "" || c.rules != nil {
				t.Errorf("%s: nobody is asked", name)
			}
			continue
		}
		child := orchestrator.Delegation{From: "kik", To: "coder", Text: c.text, Depth: 1, Repository: "app", Chain: chain.New(3).With(chain.Step{From: "kik", To: "coder"})}
		r := h.Rule(w.clock.now(), &orchestrator.Task{Requester: "ann"}, &child, orchestrator.Handed{HandoverQuestion: orchestrator.HandoverQuestion{From: "kik", To: "coder", Text: c.text}}, c.first)
		if r.Asks != c.asks || r.Deny != c.deny || r.Name != c.rule {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A mistake in a rule about hand-overs is told in its own words.
func TestProblemsOfRulesAboutHandovers(t *testing.T) {
	for when, says := range map[string]string{
		"patch.lines > 3": "unknown name patch",
		"tex == 'x'":      "Did you mean text?",
		"path == 'x'":     "unknown name path",
		"hour":            "expected true or false",
		"text <":          "unexpected token",
	} {
		p, problems := policy.CompileHandovers([]policy.RuleConfig{{Name: "a", When: when}}, nil)
		if p != nil || len(problems) != 1 || problems[0].Field != "when" || problems[0].Line != 1 || !strings.Contains(problems[0].Message, says) || strings.Contains(problems[0].Message, "patch.files") {
			t.Errorf("%s: %v", when, problems)
		}
	}
}

// H18, K44: all that holds for a patch's request holds for a hand-over's: four eyes, groups,
// reminders, escalation, the deadline, drafts that there are none of.
func TestAHandoverIsARequestLikeAnyOther(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Expires: 4 * time.Hour, Remind: []time.Duration{time.Hour}, Escalate: []approval.Step{{After: 2 * time.Hour, To: []string{"leads"}}},
		Groups: map[string][]string{"maintainers": {"ann", "bob"}, "leads": {"cleo"}}, Handovers: handovers(t, policy.RuleConfig{Name: "prod", When: `text contains "production"`, From: []string{"maintainers"}})})
	r := w.handedOn("To production", false)
	if r.Kind != approval.Handover || r.Rule.Name != "prod" || r.Agent != "coder" || r.RequesterID != "usr_ann" || r.ExpiresAt == nil {
		t.Fatalf("asked %+v", r)
	}
	w.refused(ballot(r, "ann", approval.Approve), orchestrator.CodeFourEyes, "You asked for this task")
	w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeNotAnApprover, "maintainers")
	w.refused(ballot(r, "bob", approval.RequestChanges), orchestrator.CodeBadRequest, "nothing to change")
	w.clock.step(2 * time.Hour)
	w.must(w.g.Act(w.ctx))
	w.clock.step(time.Hour)
	w.must(w.g.Act(w.ctx))
	if got := w.events(r.TaskID, event.Escalated, event.Reminded); len(got) != 2 {
		t.Errorf("%d reminders and steps", len(got))
	}
	after := w.decide(ballot(w.request(r.ID), "cleo", approval.Approve))
	if after.State != approval.Approved {
		t.Errorf("after cleo's yes it is %s", after.State)
	}
	w.expectStates(r.ID, approval.Approved, orchestrator.Queued)
	if got := w.events(r.TaskID, event.Requested, event.Decided, event.Queued); len(got) != 3 || got[0].Actor != "kik" || !strings.Contains(string(got[1].Data), `"kind":"handover"`) || got[2].Actor != "cleo" {
		t.Errorf("events %+v", got)
	}

	late := w.handedOn("To production", false)
	w.clock.step(5 * time.Hour)
	w.must(w.g.Sweep(w.ctx))
	w.expectStates(late.ID, approval.Expired, orchestrator.Expired)
	w.refused(ballot(late, "bob", approval.Approve), orchestrator.CodeExpired, "coder was not asked to work")
	if d := w.delegation(late.DelegationID); d.Error.Code != "expired" || !strings.Contains(d.Error.Message, "Nobody decided") {
		t.Errorf("the caller reads %+v", d.Error)
	}
	// The caller goes on: its last child has ended.
	if root := w.delegation(w.delegation(late.DelegationID).ParentID); root.State != orchestrator.Queued {
		t.Errorf("kik is %s", root.State)
	}
	b, err := w.g.Backtest(w.ctx, compiled(t, policy.RuleConfig{Name: "none", When: "true", Need: need(0)}), time.Time{})
	w.must(err)
	if b.Requests != 0 {
		t.Errorf("rules about patches were tried on %d hand-overs", b.Requests)
	}
}

// H18: two of a group; the digest is of this question alone, and what hides in a text asks
// for care.
func TestTwoPeopleForAHandover(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Careful: []string{approval.CarefulNeedTwo}, Handovers: handovers(t, policy.RuleConfig{Name: "two", When: "true", Need: need(2)})})
	r := w.handedOn("go", false)
	if risk := approval.RiskOf(r); risk.Level != approval.Careful {
		t.Errorf("two people: %+v", risk)
	}
	w.decide(reads(ballot(r, "bob", approval.Approve), 1, approval.CarefulNeedTwo))
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
	w.decide(ballot(r, "bob", approval.Withdraw))
	w.decide(reads(ballot(r, "cleo", approval.Approve), 1, approval.CarefulNeedTwo))
	w.decide(reads(ballot(r, "bob", approval.Approve), 1, approval.CarefulNeedTwo))
	w.expectStates(r.ID, approval.Approved, orchestrator.Queued)
	other := w.handedOn("go", false)
	if other.Revision.Digest == r.Revision.Digest {
		t.Error("the same words in another task have the same digest")
	}
	w.refused(func() approval.Ballot {
		b := ballot(other, "bob", approval.Approve)
		b.Digest = r.Revision.Digest
		return b
	}(), orchestrator.CodeSuperseded, "digest")
	for text, code := range map[string]string{"a\u202eb": "bidi", "a\u200bb": "invisible", "раypal": "lookalike", "a\x1b[2Jb": "control_chars"} {
		r := w.handedOn("line one\r\n\t"+text, true)
		if risk := approval.RiskOf(r); !slices.Contains(risk.Reasons, code) {
			t.Errorf("%q: %+v", text, risk)
		}
		b := ballot(r, "bob", approval.Approve)
		b.Channel = "telegram"
		w.refused(b, orchestrator.CodeForbidden, "open the page")
	}
}
