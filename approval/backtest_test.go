package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"

	"pgregory.net/rapid"
)

// Rules on trial decide nothing; what they would have said is kept where it differs.
func TestARuleOnTrialDecidesNothing(t *testing.T) {
	p := compile(t,
		approval.RuleConfig{Name: "strict", When: `len(patch.files) > 1`, Need: need(2), From: []string{"maintainers"}, Shadow: true},
		approval.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(0)})
	r := p.Rule(docsChange())
	if !r.Pass() || r.Rule.Name != "docs" {
		t.Fatalf("the rule on trial decided: %+v", r)
	}
	if r.Shadow == nil || r.Shadow.Name != "strict" || r.Shadow.Need != 2 {
		t.Errorf("what it would have said: %+v", r.Shadow)
	}
	small := docsChange()
	small.Patch.Files = small.Patch.Files[:1]
	if r := p.Rule(small); r.Shadow != nil {
		t.Errorf("the same ruling is a difference: %+v", r.Shadow)
	}
}

// The version is that of everything the rules say, and of nothing else.
func TestTheVersionNamesTheRules(t *testing.T) {
	base := approval.RuleConfig{Name: "a", When: "true", Need: need(1), From: []string{"maintainers"}}
	first := compile(t, base)
	if again := compile(t, base); first.Version() != again.Version() || len(first.Version()) != 12 {
		t.Errorf("versions %q and %q", first.Version(), again.Version())
	}
	if r := first.Rule(docsChange()); r.Rule.Version != first.Version() {
		t.Errorf("the ruling has version %q", r.Rule.Version)
	}
	for name, change := range map[string]func(*approval.RuleConfig){
		"when": func(c *approval.RuleConfig) { c.When = "false" }, "need": func(c *approval.RuleConfig) { c.Need = need(2) },
		"from": func(c *approval.RuleConfig) { c.From = nil }, "shadow": func(c *approval.RuleConfig) { c.Shadow = true },
		"deny": func(c *approval.RuleConfig) { c.Deny, c.Need = true, nil }, "expires": func(c *approval.RuleConfig) { c.Expires = time.Hour },
		"name": func(c *approval.RuleConfig) { c.Name = "b" },
	} {
		c := base
		change(&c)
		if compile(t, c).Version() == first.Version() {
			t.Errorf("another %s has the same version", name)
		}
	}
}

// An agent chooses how many files there are: a rule that would take long on them is
// not run, and a person is asked.
func TestARuleThatWouldTakeLongFailsClosed(t *testing.T) {
	p := compile(t, approval.RuleConfig{Name: "pairs", When: `all(patch.files, let p = .path; none(patch.files, .path == p + "x"))`, Need: need(0)})
	f := docsChange()
	if !p.Rule(f).Pass() {
		t.Fatal("the rule does not match a small patch")
	}
	for i := range 20_000 {
		f.Patch.Files = append(f.Patch.Files, approval.FileFacts{Path: fmt.Sprintf("f%d", i)})
	}
	began := time.Now()
	r := p.Rule(f)
	if r.Pass() || len(r.Notes) != 1 || r.Notes[0].Code != "rule_error" || !strings.Contains(r.Notes[0].Text, "steps") {
		t.Errorf("after %s: %+v", time.Since(began), r)
	}
	one := compile(t, approval.RuleConfig{Name: "one", When: `all(patch.files, .path != "")`, Need: need(0)})
	if !one.Rule(f).Pass() {
		t.Errorf("a single walk over %d files is refused", len(f.Patch.Files))
	}
}

// Whatever the rules are, none lets a patch with a warning or a failed check pass.
func TestNoRulePassesWhatDeservesALook(t *testing.T) {
	conditions := []string{"true", `patch.lines < 50`, `"bidi" in warnings`, `checks[1].ok`, `checks[7].ok`, `agent == "coder"`, `not all(checks, .ok)`}
	rapid.Check(t, func(rt *rapid.T) {
		var rules []approval.RuleConfig
		for i := range rapid.IntRange(0, 6).Draw(rt, "rules") {
			c := approval.RuleConfig{Name: fmt.Sprint("r", i), When: rapid.SampledFrom(conditions).Draw(rt, "when"), Shadow: rapid.Bool().Draw(rt, "shadow")}
			if c.Deny = rapid.IntRange(0, 5).Draw(rt, "deny") == 0; !c.Deny {
				c.Need = need(rapid.IntRange(0, 2).Draw(rt, "need"))
			}
			rules = append(rules, c)
		}
		p, problems := approval.CompileRules(rules, nil)
		if len(problems) > 0 {
			rt.Fatalf("%v", problems)
		}
		f := docsChange()
		if rapid.Bool().Draw(rt, "warned") {
			f.Warnings = []string{"bidi"}
		} else {
			f.Checks = append(f.Checks, approval.CheckFacts{Command: "go test", OK: false})
		}
		if r := p.Rule(f); r.Pass() || !r.Deny && r.Rule.Need < 1 {
			rt.Fatalf("it passes: %+v", r)
		}
	})
}

// Today's rules are tried on what was asked under yesterday's, and nothing is written.
func TestABacktestNamesWhatWouldHaveGoneOtherwise(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compile(t,
		approval.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(0)},
		approval.RuleConfig{Name: "rest", When: "true"})})
	put := func(p orchestrator.Proposal) approval.Request {
		d := w.checked()
		w.must(w.g.Ask(w.ctx, d, p))
		return w.request(w.delegation(d.ID).ApprovalID)
	}
	docs, code := proposal("1"), proposal("2")
	docs.Review = &patch.Review{Files: []patch.File{{Path: "a.md", Status: patch.Added, Added: 1}}, Added: 1}
	code.Review = &patch.Review{Files: []patch.File{{Path: "a.go", Status: patch.Added, Added: 1}}, Added: 1}
	passed, asked := put(docs), put(code)
	next := compile(t,
		approval.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(1), From: []string{"leads"}},
		approval.RuleConfig{Name: "code", When: `any(patch.files, .path endsWith '.go')`, Deny: true})
	b, err := w.g.Backtest(t.Context(), next, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Requests != 2 || b.Same != 0 || b.Effects[approval.Stricter] != 2 || len(b.Changes) != 2 {
		t.Fatalf("%+v", b)
	}
	by := map[string]approval.Change{}
	for _, c := range b.Changes {
		by[c.RequestID] = c
	}
	if c := by[passed.ID]; c.Was.Outcome() != "passes" || c.Would.Outcome() != "1 of leads" {
		t.Errorf("documents: %s → %s", c.Was.Outcome(), c.Would.Outcome())
	}
	if c := by[asked.ID]; c.Was.Outcome() != "1 of all approvers" || c.Would.Outcome() != "denied" {
		t.Errorf("code: %s → %s", c.Was.Outcome(), c.Would.Outcome())
	}
	if after := w.request(asked.ID); after.Version != asked.Version || after.Rule.Name != "rest" {
		t.Errorf("the backtest changed the request: %+v", after)
	}
	if b, err := w.g.Backtest(t.Context(), w.g.Config().Policy, time.Time{}); err != nil || b.Same != 2 {
		t.Errorf("the rules in force differ from themselves: %+v, %v", b, err)
	}
	if b, err := w.g.Backtest(t.Context(), next, w.clock.now().Add(time.Hour)); err != nil || b.Requests != 0 {
		t.Errorf("requests of before are tried: %+v, %v", b, err)
	}
}
