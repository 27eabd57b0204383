package policy_test

import (
	"strings"
	"testing"

	"gatehouse/approval/policy"
)

// A rule that asks for a status which no file ever has would silently match nothing: it is
// refused where it is written, and the word of before is told apart.
func TestAStatusThatNoFileHasIsAnErrorOfTheRule(t *testing.T) {
	const write = `write "removed"`
	for when, want := range map[string]struct {
		says string
		col  int
	}{
		`any(patch.files, .status == "deleted")`:                                  {write, 29},
		`any(patch.files, "deleted" != .status)`:                                  {write, 18},
		`any(patch.files, .status in ["added", "deleted"])`:                       {write, 39},
		`"deleted" in map(patch.files, .status)`:                                  {write, 1},
		`any(patch.files, let s = .status; s == "deleted")`:                       {write, 40},
		`any(patch.files, lower(.status) == "deleted")`:                           {write, 36},
		`any(patch.files, upper(.status) == "DELETED")`:                           {write, 36},
		`any(patch.files, .status matches "^(deleted|added)$")`:                   {write, 34},
		`patch.files[0].status == "deleted"`:                                      {write, 26},
		`any(patch.files, .status startsWith "del")`:                              {`a status is added, modified, removed, renamed or copied`, 37},
		`any(patch.files, .status == "type")`:                                     {`no file has the status "type"`, 29},
		`any(filter(patch.files, .binary), .status == "remved")`:                  {`no file has the status "remved"`, 46},
		`none(patch.files, .path == "deleted" && .status in ["gone", "renamed"])`: {`no file has the status "gone"`, 53},
	} {
		_, problems := policy.CompileRules([]policy.RuleConfig{{Name: "a", When: when}}, nil)
		if len(problems) != 1 {
			t.Errorf("%s: %v", when, problems)
			continue
		}
		if p := problems[0]; p.Field != "when" || p.Line != 1 || p.Column != want.col || !strings.Contains(p.Message, want.says) {
			t.Errorf("%s: %d:%d %s", when, p.Line, p.Column, p.Message)
		}
	}
	for _, when := range []string{
		`any(patch.files, .status == "removed" || .status in ["added", "modified", "renamed", "copied"])`,
		`any(patch.files, .status matches "^re" && .status startsWith "re" && .status endsWith "ed" && .status contains "a")`,
		`any(patch.files, .path == "deleted" && .status != "added")`,
		`agent == "deleted" || branch in ["deleted", "gone"] || any(patch.paths, # contains "deleted")`,
	} {
		if _, problems := policy.CompileRules([]policy.RuleConfig{{Name: "a", When: when}}, nil); len(problems) > 0 {
			t.Errorf("%s: %v", when, problems)
		}
	}
}
