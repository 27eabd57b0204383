package policy_test

import (
	"testing"

	"gatehouse/approval/policy"
)

// A typing error in a condition is told in the words of conditions, with what was meant.
func TestAConditionIsCorrectedInItsOwnWords(t *testing.T) {
	for when, want := range map[string]string{
		"any(patch.fils, true)":                "there is no patch.fils. Did you mean patch.files?",
		"patch.zzzzzzz > 1":                    "there is no patch.zzzzzzz. There is patch.files, patch.paths, patch.lines, patch.added and patch.removed.",
		"any(patch.files, .pth == 'a')":        "a file has no .pth. Did you mean .path?",
		"any(checks, .okk)":                    "a check has no .okk. Did you mean .ok?",
		"agnt == 'coder'":                      "unknown name agnt. Did you mean agent?",
		"any(patch.files, path == 'a')":        "unknown name path. Of a file write .path, as in any(patch.files, .path …).",
		"hasPrefx(agent, 'c')":                 "unknown name hasPrefx. Did you mean hasPrefix?",
		"now() > 1":                            "unknown name now.",
		"agent.x == 'a'":                       "a text has no .x.",
		"patch.files > 3":                      "invalid operation: > (mismatched types list of files and number)",
		"not patch":                            "invalid operation: not (mismatched type patch)",
		"hour":                                 "expected true or false, but got number",
		"any(patch.files, { .path })":          "predicate should return boolean (got text)",
		"any(agent, true)":                     "builtin any takes only list (got text)",
		"len(filter(patch.files, .binary)) > ": "unexpected token EOF",
	} {
		_, problems := policy.CompileRules([]policy.RuleConfig{{Name: "a", When: when}}, nil)
		if len(problems) != 1 || problems[0].Message != want {
			t.Errorf("%s: want %q, got %v", when, want, problems)
		}
	}
}
