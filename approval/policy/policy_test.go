package policy_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/approval/policy"
)

func need(n int) *int { return &n }

// docsChange is a small change of two Markdown files on a Saturday morning.
func docsChange() policy.Facts {
	return policy.Facts{
		Patch: policy.PatchFacts{Lines: 12, Added: 10, Removed: 2, Paths: []string{"README.md", "docs/use.md"}, Files: []policy.FileFacts{
			{Path: "README.md", Status: "modified", Added: 6, Removed: 2, Mode: "100644"},
			{Path: "docs/use.md", Status: "added", Added: 4, Mode: "100644"}}},
		Warnings: []string{}, Notes: []string{"no_checks"}, Agent: "coder", Chain: []string{"kik", "coder"}, Requester: "ann",
		Repository: "app", Branch: "main", Checks: []policy.CheckFacts{{Command: "go vet ./...", OK: true}},
		Hour: 6, Weekday: "saturday", Depth: 1,
	}
}

// movedDocs is docsChange in which the second file came from elsewhere, unseen.
func movedDocs() policy.Facts {
	f := docsChange()
	f.Patch.Files[1].OldPath, f.Patch.Files[1].Status = "docs/usage.md", "renamed"
	f.Patch.Files = append(f.Patch.Files, policy.FileFacts{Path: "docs/usage.md", Status: "removed", Removed: 3, OldMode: "100644"})
	f.Patch.Paths, f.Patch.Removed, f.Patch.Lines = append(f.Patch.Paths, "docs/usage.md"), 5, 15
	f.Unseen = []string{"docs/use.md"}
	return f
}

func compile(t *testing.T, rules ...policy.RuleConfig) *policy.Policy {
	t.Helper()
	p, problems := policy.CompileRules(rules, map[string][]string{"maintainers": {"ann", "bob", "cleo"}, "leads": {"dora"}})
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	return p
}

// The expressions of the contract, and one for every name that rules may use.
func TestRulesSeeTheDocumentedFacts(t *testing.T) {
	for when, want := range map[string]bool{
		`true`: true,
		`all(patch.files, .path endsWith '.md') && patch.lines < 50`:                           true,
		`any(patch.files, .path startsWith 'core/')`:                                           false,
		`any(patch.files, .old_path != "") || len(unseen) > 0`:                                 false,
		`patch.paths[0] == "README.md" && "docs/use.md" in patch.paths`:                        true,
		`patch.added == 10 && patch.removed == 2 && all(patch.files, !.binary)`:                true,
		`all(patch.files, .mode == "100644" && .added > 0) && sum(patch.files, .removed) == 2`: true,
		`"ci_file" in warnings`: false,
		`"no_checks" in notes`:  true,
		`agent == "coder" && "kik" in chain && requester == "ann"`:    true,
		`repository == "app" && branch == "main"`:                     true,
		`all(checks, .ok) && checks[0].command startsWith "go vet"`:   true,
		`hour < 7 && weekday in ["saturday", "sunday"] && depth == 1`: true,
		`patch.files | filter(.path matches "^docs/") | len() == 1`:   true,
		`len(patch.files) == 2`:                                       true,
	} {
		p := compile(t, policy.RuleConfig{Name: "r", When: when, Need: need(3), From: []string{"maintainers"}})
		got := p.Rule(docsChange()).Rule.Name == "r"
		if got != want {
			t.Errorf("%s: matched %v, want %v", when, got, want)
		}
	}
}

// A file that moved is two paths: the one that it left, and the one where it is now.
func TestRulesSeeBothSidesOfAMove(t *testing.T) {
	for when, want := range map[string]bool{
		`any(patch.files, .old_path == "docs/usage.md" and .status == "renamed")`: true,
		`any(patch.files, .path == "docs/usage.md" and .status == "removed")`:     true,
		`"docs/usage.md" in patch.paths && len(patch.paths) == 3`:                 true,
		`unseen[0] == "docs/use.md" && "docs/use.md" in unseen`:                   true,
		`all(patch.files, .path != "docs/usage.md")`:                              false,
		`patch.lines < 13`: false,
	} {
		p := compile(t, policy.RuleConfig{Name: "r", When: when, Need: need(3), From: []string{"maintainers"}})
		if got := p.Rule(movedDocs()).Rule.Name == "r"; got != want {
			t.Errorf("%s: matched %v, want %v", when, got, want)
		}
	}
}

// What nobody would have read in full, or what is gone, passes no rule with need 0, and
// the note says why.
func TestNothingThatMovesPassesByRule(t *testing.T) {
	p := compile(t, policy.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(0)})
	for want, change := range map[string]func(*policy.Facts){
		"moves a file":   func(f *policy.Facts) { f.Patch.Files[1].Status = "renamed" },
		"copies a file":  func(f *policy.Facts) { f.Patch.Files[1].Status = "copied" },
		"removes a file": func(f *policy.Facts) { f.Patch.Files[0].Status = "removed" },
		"brings content": func(f *policy.Facts) { f.Unseen = []string{"docs/use.md"} },
	} {
		f := docsChange()
		if !p.Rule(f).Pass() {
			t.Fatal("the plain change does not pass")
		}
		change(&f)
		r := p.Rule(f)
		if r.Pass() || r.Rule.Need < 1 || len(r.Notes) != 1 || r.Notes[0].Code != "rule_not_applied" || !strings.Contains(r.Notes[0].Text, want) {
			t.Errorf("%s: %+v", want, r)
		}
	}
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	p := compile(t,
		policy.RuleConfig{Name: "core", When: `any(patch.files, .path startsWith 'core/')`, Need: need(2), From: []string{"maintainers"}, Expires: time.Hour},
		policy.RuleConfig{Name: "never", When: `any(patch.files, .path == 'LICENSE')`, Deny: true},
		policy.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(0)},
		policy.RuleConfig{Name: "one", When: `patch.lines < 100`})
	touch := func(path string) policy.Facts {
		f := docsChange()
		f.Patch.Files = append(f.Patch.Files, policy.FileFacts{Path: path})
		return f
	}
	if r := p.Rule(docsChange()); !r.Pass() || r.Rule.Name != "docs" {
		t.Errorf("documents alone: %+v", r)
	}
	if r := p.Rule(touch("core/a.go")); r.Rule.Name != "core" || r.Rule.Need != 2 || r.Expires != time.Hour || r.Rule.When == "" || r.Rule.From[0] != "maintainers" {
		t.Errorf("core: %+v", r)
	}
	if r := p.Rule(touch("LICENSE")); !r.Deny || r.Pass() || r.Rule.Name != "never" {
		t.Errorf("licence: %+v", r)
	}
	if r := p.Rule(touch("main.go")); r.Rule.Name != "one" || r.Rule.Need != 1 {
		t.Errorf("without need one yes is needed: %+v", r)
	}
	large := touch("main.go")
	large.Patch.Lines = 500
	if r := p.Rule(large); r.Rule.Name != "default" || r.Rule.Need != 1 || len(r.Rule.From) != 0 {
		t.Errorf("nothing matches: %+v", r)
	}
	var none *policy.Policy
	if r := none.Rule(docsChange()); r.Rule.Name != "default" || r.Rule.Need != 1 {
		t.Errorf("no policy: %+v", r)
	}
}

// A rule with need 0 passes nothing that has a warning or a failed check; the next
// rule that matches asks people, which may be stricter than one yes.
func TestNothingRiskyPassesByRule(t *testing.T) {
	p := compile(t,
		policy.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith '.md')`, Need: need(0)},
		policy.RuleConfig{Name: "early", When: `hour < 7`, Need: need(2), From: []string{"maintainers"}})
	warned, failed := docsChange(), docsChange()
	warned.Warnings = []string{"bidi"}
	failed.Checks = append(failed.Checks, policy.CheckFacts{Command: "go test ./...", OK: false})
	for name, f := range map[string]policy.Facts{"warning": warned, "failed check": failed} {
		r := p.Rule(f)
		if r.Pass() || r.Rule.Name != "early" || r.Rule.Need != 2 {
			t.Errorf("%s: %+v", name, r)
		}
		if len(r.Notes) != 1 || r.Notes[0].Code != "rule_not_applied" || !strings.Contains(r.Notes[0].Text, `"docs"`) {
			t.Errorf("%s: notes %+v", name, r.Notes)
		}
	}
}

// checks[3] does not exist on this change: what breaks asks a person and says why.
func TestARuleThatBreaksFailsClosed(t *testing.T) {
	broken := `checks[3].ok`
	for name, rules := range map[string][]policy.RuleConfig{
		"that would pass": {{Name: "b", When: broken, Need: need(0)}, {Name: "all", When: "true", Need: need(0)}},
		"that would deny": {{Name: "b", When: broken, Deny: true}, {Name: "all", When: "true", Need: need(0)}},
		"that asks two":   {{Name: "b", When: broken, Need: need(2), From: []string{"maintainers"}}, {Name: "all", When: "true", Need: need(0)}},
	} {
		r := compile(t, rules...).Rule(docsChange())
		if r.Pass() || r.Deny || r.Rule.Need < 1 {
			t.Errorf("%s: %+v", name, r)
		}
		if len(r.Notes) == 0 || r.Notes[0].Code != "rule_error" || !strings.Contains(r.Notes[0].Text, "out of range") {
			t.Errorf("%s: notes %+v", name, r.Notes)
		}
		if name == "that asks two" && (r.Rule.Name != "b" || r.Rule.Need != 2) {
			t.Errorf("a stricter rule was dropped because it broke: %+v", r)
		}
	}
}

func TestProblemsAreFoundAtLoad(t *testing.T) {
	groups := map[string][]string{"maintainers": {"ann", "bob"}, "empty": {}}
	for name, c := range map[string]struct {
		rule        policy.RuleConfig
		field, says string
		line, col   int
	}{
		"syntax":          {policy.RuleConfig{Name: "a", When: "patch.lines <"}, "when", "unexpected token", 1, 13},
		"unknown name":    {policy.RuleConfig{Name: "a", When: "true &&\n  patch.size > 3"}, "when", "size", 2, 9},
		"no truth":        {policy.RuleConfig{Name: "a", When: "patch.lines"}, "when", "expected true or false", 1, 1},
		"wrong type":      {policy.RuleConfig{Name: "a", When: `hour == "six"`}, "when", "mismatched types", 1, 6},
		"no condition":    {policy.RuleConfig{Name: "a"}, "when", `Write "true"`, 0, 0},
		"not repeatable":  {policy.RuleConfig{Name: "a", When: "now().Hour() > 3"}, "when", "now", 1, 1},
		"no name":         {policy.RuleConfig{When: "true"}, "name", "needs a name", 0, 0},
		"unknown group":   {policy.RuleConfig{Name: "a", When: "true", From: []string{"leads"}}, "from", `no group "leads"`, 0, 0},
		"empty group":     {policy.RuleConfig{Name: "a", When: "true", From: []string{"empty"}}, "from", "nobody in it", 0, 0},
		"too many":        {policy.RuleConfig{Name: "a", When: "true", Need: need(3), From: []string{"maintainers"}}, "need", "needs 3 approvals, but maintainers has 2", 0, 0},
		"negative":        {policy.RuleConfig{Name: "a", When: "true", Need: need(-1)}, "need", "-1", 0, 0},
		"deny and need":   {policy.RuleConfig{Name: "a", When: "true", Need: need(1), Deny: true}, "need", "denies", 0, 0},
		"negative expiry": {policy.RuleConfig{Name: "a", When: "true", Expires: -time.Hour}, "expires", "positive", 0, 0},
	} {
		first := policy.RuleConfig{Name: "fine", When: "true"}
		p, problems := policy.CompileRules([]policy.RuleConfig{first, c.rule}, groups)
		if p != nil || len(problems) != 1 {
			t.Errorf("%s: %d problems: %v", name, len(problems), problems)
			continue
		}
		got := problems[0]
		if got.Rule != 1 || got.Field != c.field || !strings.Contains(got.Message, c.says) || got.Line != c.line || got.Column != c.col {
			t.Errorf("%s: %+v", name, got)
		}
	}
	_, problems := policy.CompileRules([]policy.RuleConfig{{Name: "a", When: "true"}, {Name: "a", When: "true"}}, nil)
	if len(problems) != 1 || !strings.Contains(problems[0].String(), `two rules "a"`) {
		t.Errorf("the same name twice: %v", problems)
	}
}

func TestHintsNameRulesThatARequesterCouldNeverSatisfy(t *testing.T) {
	groups := map[string][]string{"maintainers": {"ann", "bob", "cleo"}}
	p := compile(t,
		policy.RuleConfig{Name: "two", When: "true", Need: need(2), From: []string{"maintainers"}},
		policy.RuleConfig{Name: "three", When: "true", Need: need(3), From: []string{"maintainers"}})
	if h := p.Hints(groups, true); len(h) != 1 || h[0].Rule != 1 || !strings.Contains(h[0].Message, `"three"`) {
		t.Errorf("with four eyes: %v", h)
	}
	if h := p.Hints(groups, false); len(h) != 0 {
		t.Errorf("without four eyes: %v", h)
	}
}
