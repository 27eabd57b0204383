package policy_test

import (
	"encoding/json"
	"testing"

	"gatehouse/approval/policy"
)

// The rules of the manual, and what they say of calls: a field that is not there breaks
// none of them.
func TestRulesAboutActions(t *testing.T) {
	p, problems := policy.CompileActions([]policy.RuleConfig{
		{Name: "never", When: `input.command contains 'rm -rf /'`, Deny: true},
		{Name: "read", When: `tool in ['read_file','search','list_files']`, Need: new(0)},
		{Name: "deploy", When: `tool startsWith 'mcp_deploy_'`, Need: new(2), From: []string{"maintainers"}},
		{Name: "shell", When: `tool == 'Bash' && not (input.command matches '^(go|npm|git status)( |$)')`, Need: new(1)},
		{Name: "count", When: `input.count != nil && input.count > 2`, Need: new(1)},
		{Name: "many", When: `any(input.paths, # startsWith "/etc")`, Need: new(1)},
	}, map[string][]string{"maintainers": {"ann", "bob"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		tool, input, rule string
		asks, deny, first bool
	}{
		{tool: "read_file", input: `{"path":"a"}`, rule: "read"},
		{tool: "mcp_deploy_now", input: `{}`, rule: "deploy", asks: true},
		{tool: "Bash", input: `{"command":"go test ./..."}`},
		{tool: "Bash", input: `{"command":"gofmt -l ."}`, rule: "shell", asks: true},
		{tool: "Bash", input: `{"command":["sh","-c","x"]}`, rule: "shell", asks: true},
		{tool: "Bash", input: `{"command":"rm -rf / --no-preserve-root"}`, rule: "never", deny: true},
		{tool: "read_file", input: `{"path":"a"}`, first: true, rule: policy.InAnyCase, asks: true},
		{tool: "mcp_x_edit", input: `{"paths":["/etc/passwd"]}`, rule: "many", asks: true},
		{tool: "mcp_x_edit", input: `{"paths":["a"]}`},
		{tool: "mcp_x_edit", input: `{"paths":"/etc/shadow"}`, rule: "many", asks: true},
		{tool: "mcp_x_edit", input: `{"paths":null}`},
		{tool: "mcp_x_edit", input: `{"count":"3"}`, rule: "deploy", asks: true}, // a rule breaks: the strictest holds
	} {
		f := policy.ActionFacts{Tool: c.tool, Chain: []string{"coder"}}
		if err := json.Unmarshal([]byte(c.input), &f.Input); err != nil {
			t.Fatal(err)
		}
		got, asks := p.Rule(f, c.first)
		if got.Rule.Name != c.rule || asks != c.asks || got.Deny != c.deny {
			t.Errorf("%s %s: rule %q, asks %t, denies %t: %+v", c.tool, c.input, got.Rule.Name, asks, got.Deny, got.Notes)
		}
	}
}

// A rule on trial says what it would have done, and decides nothing.
func TestRulesAboutActionsOnTrial(t *testing.T) {
	p, problems := policy.CompileActions([]policy.RuleConfig{{Name: "all", When: `true`, Shadow: true}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got, asks := p.Rule(policy.ActionFacts{Tool: "x"}, false)
	if asks || got.Shadow == nil || got.Shadow.Name != "all" {
		t.Errorf("asks %t, on trial %+v", asks, got.Shadow)
	}
}

// What no rule may look at, or would take too long, is refused when it is written.
func TestRulesAboutActionsThatCannotBe(t *testing.T) {
	for _, when := range []string{`patch.lines > 1`, `input.a + input.b == "x"`, `tool ==`, `hints.readOnly`} {
		if _, problems := policy.CompileActions([]policy.RuleConfig{{Name: "x", When: when}}, nil); len(problems) == 0 {
			t.Errorf("%s was taken", when)
		}
	}
}
