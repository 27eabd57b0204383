package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/approval/policy"

	"pgregory.net/rapid"
)

// Rules on trial decide nothing; what they would have said is kept where it differs.
func TestARuleOnTrialDecidesNothing(t *testing.T) {
	p := compile(t,
		policy.RuleConfig{Name: "strict", When: `len(patch.files) > 1`, Need: need(2), From: []string{"maintainers"}, Shadow: true},
		policy.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(0)})
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
	base := policy.RuleConfig{Name: "a", When: "true", Need: need(1), From: []string{"maintainers"}}
	first := compile(t, base)
	if again := compile(t, base); first.Version() != again.Version() || len(first.Version()) != 12 {
		t.Errorf("versions %q and %q", first.Version(), again.Version())
	}
	if r := first.Rule(docsChange()); r.Rule.Version != first.Version() {
		t.Errorf("the ruling has version %q", r.Rule.Version)
	}
	for name, change := range map[string]func(*policy.RuleConfig){
		"when": func(c *policy.RuleConfig) { c.When = "false" }, "need": func(c *policy.RuleConfig) { c.Need = need(2) },
		"from": func(c *policy.RuleConfig) { c.From = nil }, "shadow": func(c *policy.RuleConfig) { c.Shadow = true },
		"deny": func(c *policy.RuleConfig) { c.Deny, c.Need = true, nil }, "expires": func(c *policy.RuleConfig) { c.Expires = time.Hour },
		"name": func(c *policy.RuleConfig) { c.Name = "b" },
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
	p := compile(t, policy.RuleConfig{Name: "pairs", When: `all(patch.files, let p = .path; none(patch.files, .path == p + "x"))`, Need: need(0)})
	f := docsChange()
	if !p.Rule(f).Pass() {
		t.Fatal("the rule does not match a small patch")
	}
	for i := range 20_000 {
		f.Patch.Files = append(f.Patch.Files, policy.FileFacts{Path: fmt.Sprintf("f%d", i)})
	}
	began := time.Now()
	r := p.Rule(f)
	if r.Pass() || len(r.Notes) != 1 || r.Notes[0].Code != "rule_error" || !strings.Contains(r.Notes[0].Text, "steps") {
		t.Errorf("after %s: %+v", time.Since(began), r)
	}
	one := compile(t, policy.RuleConfig{Name: "one", When: `all(patch.files, .path != "")`, Need: need(0)})
	if !one.Rule(f).Pass() {
		t.Errorf("a single walk over %d files is refused", len(f.Patch.Files))
	}
}

// Whatever the rules are, none lets a patch with a warning or a failed check pass.
func TestNoRulePassesWhatDeservesALook(t *testing.T) {
	conditions := []string{"true", `patch.lines < 50`, `"bidi" in warnings`, `checks[1].ok`, `checks[7].ok`, `agent == "coder"`, `not all(checks, .ok)`}
	rapid.Check(t, func(rt *rapid.T) {
		var rules []policy.RuleConfig
		for i := range rapid.IntRange(0, 6).Draw(rt, "rules") {
			c := policy.RuleConfig{Name: fmt.Sprint("r", i), When: rapid.SampledFrom(conditions).Draw(rt, "when"), Shadow: rapid.Bool().Draw(rt, "shadow")}
			if c.Deny = rapid.IntRange(0, 5).Draw(rt, "deny") == 0; !c.Deny {
				c.Need = need(rapid.IntRange(0, 2).Draw(rt, "need"))
			}
			rules = append(rules, c)
		}
		p, problems := policy.CompileRules(rules, nil)
		if len(problems) > 0 {
			rt.Fatalf("%v", problems)
		}
		f := docsChange()
		if rapid.Bool().Draw(rt, "warned") {
			f.Warnings = []string{"bidi"}
		} else {
			f.Checks = append(f.Checks, policy.CheckFacts{Command: "go test", OK: false})
		}
		if r := p.Rule(f); r.Pass() || !r.Deny && r.Rule.Need < 1 {
			rt.Fatalf("it passes: %+v", r)
		}
	})
}
