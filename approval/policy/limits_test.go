package policy_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator/patch"
)

// Everybody who may read requests may try rules. None of these may take the server down.
func TestAConditionCannotTakeAllMemoryOrTime(t *testing.T) {
	doubled := `let a = .path; let b = a + a; let c = b + b; let d = c + c; len(d) > 0`
	for _, when := range []string{
		`len(reduce(1..60, #acc + #acc, "aaaaaaaa")) > 0`,
		`len(groupBy(patch.files, .path)) > 0`,
		`reduce(patch.files, #acc + 1, 0) > 0`,
		`let a = repeat("a", 1000); len(a) > 0`,
		`let a = replace(agent, "", agent); let b = replace(a, "", a); len(b) > 0`,
		`let a = agent + agent; let b = a + a; len(b) > 0`,
		`any(patch.files, ` + doubled + `)`,
		`any(map(patch.files, .path), # + # == "x")`,
		`let a = [1, 1]; let b = [a, a]; let c = [b, b]; len(c) > 0`,
		`let a = {"x": agent}; len(a) > 0`,
		`let a = map(patch.files, patch.files); a == a`,
		`let a = map(patch.files, patch.files); a in a`,
		`len(toJSON(map(patch.files, patch.files))) > 0`,
		`len(string(map(patch.files, patch.files))) > 0`,
		`len(join(map(1..1000, agent), agent)) > 0`,
		`len(concat(warnings, warnings)) > 0`,
		`len(uniq(map(patch.files, patch.files))) > 0`,
		`let a = 1..900000; count(a, none(a, # < 0)) > 5`,
		`any(1..patch.lines, # > 5)`,
		`any(0..9223372036854775807, # > 5)`,
		`any(-9223372036854775807..9223372036854775807, # > 5)`,
	} {
		if _, problems := policy.CompileRules([]policy.RuleConfig{{Name: "x", When: when}}, nil); len(problems) != 1 || problems[0].Line != 1 || problems[0].Column < 1 {
			t.Errorf("%s: %v", when, problems)
		}
	}
	for _, when := range []string{strings.Repeat("(", 1<<20), strings.Repeat("!", 1<<20) + "true", strings.Repeat("[", 8<<10) + " "} {
		if _, problems := policy.CompileRules([]policy.RuleConfig{{Name: "deep", When: when}}, nil); len(problems) != 1 {
			t.Errorf("%.10s: %v", when, problems)
		}
	}
	long := policy.Facts{Patch: policy.PatchFacts{Files: []policy.FileFacts{{Path: strings.Repeat("a/", 2000)}}}}
	for _, when := range []string{
		`all(1..1000, all(1..1000, all(1..1000, # > 0)))`,
		`any(patch.files, let parts = split(.path, ""); all(parts, all(parts, all(parts, # != "b"))))`,
	} {
		p := compile(t, policy.RuleConfig{Name: "slow", When: when, Need: need(0)})
		began := time.Now()
		if r := p.Rule(long); r.Rule.Name != "default" || len(r.Notes) != 1 {
			t.Errorf("%s: %+v after %v", when, r, time.Since(began))
		}
	}
}

func TestWhatConditionsNeedCompiles(t *testing.T) {
	f := policy.Facts{Agent: "coder", Chain: []string{"kik", "coder"}, Requester: "ann", Hour: 10, Weekday: "monday", Repository: "app", Branch: "main",
		Warnings: []string{"ci_file"}, Checks: []policy.CheckFacts{{Command: "go test", OK: true}},
		Patch: policy.PatchFacts{Lines: 3, Added: 2, Removed: 1, Files: []policy.FileFacts{{Path: "core/a.go", OldPath: "core/b.go", Status: string(patch.Renamed), Added: 2, Removed: 1, Mode: "100644"}}}}
	for _, when := range []string{
		`all(patch.files, .path endsWith ".go") && patch.lines < 50`,
		`any(patch.files, .path startsWith 'core/')`,
		`"ci_file" in warnings || hour < 7 || weekday in ["saturday", "sunday"]`,
		`agent == "coder" && "kik" in chain && all(checks, .ok)`,
		`hour in 9..17 && patch.added + patch.removed == patch.lines`,
		`any(patch.files, .path in [.old_path, "core/a.go"])`,
		`sum(patch.files, .added) > 1 && sum(map(patch.files, .removed)) == 1`,
		`any(patch.files, split(.path, "/")[0] == "core")`,
		`any(patch.files, let p = .path; p + ".orig" != .old_path && lower(p) matches "^core/.*[.]go$")`,
		`warnings == ["ci_file"] && len(filter(patch.files, not .binary)) == 1`,
		`chain[0] == "kik" && first(chain) == "kik" && count(checks, .ok) == 1 && last(chain) == agent`,
		`(patch.files | filter(.added > 0) | len()) == 1 && find(patch.files, .binary) == nil`,
		`any(patch.files, .mode == "100644") ? true : false`,
		`requester not in ["bob"] && "core/" + "a.go" in map(patch.files, .path)`,
	} {
		if r := compile(t, policy.RuleConfig{Name: "x", When: when, Need: need(2)}).Rule(f); r.Rule.Name != "x" || len(r.Notes) > 0 {
			t.Errorf("%s: %+v", when, r)
		}
	}
}

// A path that is too long for a rule is an agent's choice. It leads to no fewer and no
// other people than the strictest rule asks for, about patches and about hand-overs.
func TestARuleThatBreaksAsksTheStrictestPeople(t *testing.T) {
	groups := map[string][]string{"maintainers": {"bob", "cleo", "emil"}}
	split := func(of, word string) string { return `any(` + of + `, any(split(.path, '/'), # == '` + word + `'))` }
	long := []policy.FileFacts{{Path: "core/a.go"}, {Path: strings.Repeat("a/", 2000)}}
	p, problems := policy.CompileRules([]policy.RuleConfig{
		{Name: "novendor", When: split("patch.files", "vendor"), Deny: true},
		{Name: "fixtures", When: split("patch.files", "testdata"), Need: need(1)},
		{Name: "core", When: `any(patch.files, .path startsWith 'core/')`, Need: need(2), From: []string{"maintainers"}},
		{Name: "rest", When: "true", Need: need(1)},
	}, groups)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if r := p.Rule(policy.Facts{Patch: policy.PatchFacts{Files: long}}); r.Rule.Name != "core" || r.Rule.Need != 2 || len(r.Notes) != 2 {
		t.Errorf("a patch: %+v", r)
	}
	if r := p.Rule(policy.Facts{Patch: policy.PatchFacts{Files: long[:1]}}); r.Rule.Name != "core" || len(r.Notes) != 0 {
		t.Errorf("without the long path: %+v", r)
	}
	if r := p.Rule(policy.Facts{Patch: policy.PatchFacts{Files: long[1:]}}); r.Rule.Name != "core" {
		t.Errorf("where only the rest matches: %+v", r)
	}
}
