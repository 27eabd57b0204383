package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
)

// shared is the plain change with the work of these agents in it.
func shared(digit string, authors ...orchestrator.Author) orchestrator.Proposal {
	p := proposal(digit)
	p.Lineage.Authors = authors
	return p
}

// A yes is let in only where each of the agents lets it in.
func TestTheStrictestModeCounts(t *testing.T) {
	for modes, want := range map[string]string{
		"any any": "any", "any web": "web", "web any": "web", "chat any": "chat", "any chat": "chat", "chat chat": "chat",
		"telegram any": "telegram", "chat telegram": "web", "telegram chat": "web", "chat web": "web", "web telegram": "web",
		"any chat telegram": "web", "chat telegram any": "web", "any any telegram": "telegram", "none chat": "chat", "chat none": "chat",
	} {
		c, p := approval.Config{Agents: map[string]approval.AgentRule{}}, proposal("1")
		for i, mode := range strings.Fields(modes) {
			agent := []string{"coder", "deps", "docs"}[i]
			if p.Lineage.Authors = append(p.Lineage.Authors, orchestrator.Author{Agent: agent}); mode != "none" {
				c.Agents[agent] = approval.AgentRule{Mode: mode}
			}
		}
		w := newWorld(t, c)
		d := w.checked()
		w.must(w.g.Ask(w.ctx, d, p))
		if r := w.request(w.delegation(d.ID).ApprovalID); r.Mode != want {
			t.Errorf("%s: %q, want %q", modes, r.Mode, want)
		}
	}
}

// Who worked on a tree, who owns them and what confined them are facts: stored with the
// revision, seen by rules when it is asked, and by others that are tried on it later.
func TestRulesAndBacktestsSeeWhoWorkedOnATree(t *testing.T) {
	facts := func(need *int) policy.RuleConfig {
		return policy.RuleConfig{Name: "seen", Need: need,
			When: `len(agents) == 2 && agents[0] == "coder" && agents[1] == "deps" && len(owners) == 2 && "cleo" in owners && "bob" in owners && len(sandboxes) == 2 && sandboxes[0] == "bwrap" && "none" in sandboxes`}
	}
	w := newWorld(t, approval.Config{FourEyes: true, Policy: compiled(t, facts(need(1)), policy.RuleConfig{Name: "rest", When: "true", Need: need(3)}),
		Agents: map[string]approval.AgentRule{"coder": {Owner: "cleo"}, "deps": {Owner: "bob"}, "docs": {Owner: "dora"}}})
	put := func(p orchestrator.Proposal) approval.Request {
		d := w.checked()
		w.must(w.g.Ask(w.ctx, d, p))
		return w.request(w.delegation(d.ID).ApprovalID)
	}
	both := []orchestrator.Author{{Agent: "coder", Sandbox: "bwrap"}, {Agent: "deps"}}
	r, alone := put(shared("1", both...)), put(shared("2", both[0]))
	if r.Rule.Name != "seen" || alone.Rule.Name != "rest" {
		t.Errorf("asked by the rules %s and %s", r.Rule.Name, alone.Rule.Name)
	}
	if !slices.Equal(r.Revision.Authors, both) || !slices.Equal(alone.Revision.Authors, both[:1]) {
		t.Errorf("stored: %+v and %+v", r.Revision.Authors, alone.Revision.Authors)
	}
	w.refused(ballot(r, "bob", approval.Approve), orchestrator.CodeFourEyes, "You own the agent deps, which worked on it")

	// The configuration moves on, and what was stored stays.
	c := w.g.Config()
	c.Agents = map[string]approval.AgentRule{"deps": {Owner: "eve"}}
	w.g.SetConfig(c)
	b, err := w.g.Backtest(w.ctx, compiled(t, facts(need(2)), policy.RuleConfig{Name: "two", When: `agent == "deps"`, Need: need(2)}), time.Time{})
	w.must(err)
	would := map[string]string{}
	for _, c := range b.Changes {
		would[c.RequestID] = c.Would.Name + ": " + c.Would.Outcome()
	}
	if would[r.ID] != "seen: 2 of all approvers" || would[alone.ID] != "default: 1 of all approvers" {
		t.Errorf("tried on them: %v", would)
	}
	// A rule on an agent alone is asked for each of them there, too.
	b, err = w.g.Backtest(w.ctx, compiled(t, policy.RuleConfig{Name: "deps", When: `agent == "deps"`, Deny: true}), time.Time{})
	w.must(err)
	if b.Requests != 2 || b.Rules["deps"] != 1 || b.Rules["default"] != 1 {
		t.Errorf("by rule: %v", b.Rules)
	}
}
