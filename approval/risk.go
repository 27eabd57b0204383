package approval

import (
	"slices"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator/patch"
)

// Level says how much care a request asks for.
type Level string

// A careful request is approved on its page only, where all of it can be seen.
const (
	Plain   Level = "plain"
	Careful Level = "careful"
)

// ReasonCut is the reason of a diff that is too long to be shown as a whole.
const ReasonCut = "diff_cut"

// CutLines is how many changed lines are shown in one piece; a longer diff
// is cut into pages.
const CutLines = patch.MaxLines

// Risk is the level with what gave it: warning codes, checks_failed, diff_cut.
type Risk struct {
	Level   Level    `json:"level"`
	Reasons []string `json:"reasons"`
}

// RiskOf judges the current revision: a warning, a failed check or a diff that had
// to be cut make it careful; notes do not.
func RiskOf(r Request) Risk {
	reasons := warningCodes(r.Revision)
	for _, c := range r.Revision.Checks {
		if !c.OK {
			reasons = appendOnce(reasons, "checks_failed")
		}
	}
	if r.Revision.Added+r.Revision.Removed > CutLines || r.IsHandover() && len(r.Question.Whole()) > CutQuestion {
		reasons = appendOnce(reasons, ReasonCut)
	}
	if len(reasons) == 0 {
		return Risk{Level: Plain, Reasons: reasons}
	}
	return Risk{Level: Careful, Reasons: reasons}
}

// warningCodes lists the kinds of warnings of a revision, each once.
func warningCodes(v Revision) []string {
	codes := []string{}
	for _, w := range v.Warnings {
		codes = appendOnce(codes, w.Code)
	}
	return codes
}

// What settings may make careful, beside what is: a note of that code, or a rule that
// needs two people or more.
const (
	CarefulNoChecks  = "no_checks"
	CarefulNoSandbox = "no_sandbox"
	CarefulNeedTwo   = "need_two"
)

// promote makes warnings of the notes that the settings want looked at.
func (v *Revision) promote(codes []string) {
	v.Notes = slices.DeleteFunc(v.Notes, func(n patch.Note) bool {
		if !slices.Contains(codes, n.Code) {
			return false
		}
		v.Warnings = append(v.Warnings, patch.Warning{Code: n.Code, Text: n.Text})
		return true
	})
}

// warnOfRules makes a revision careful of whose rules some could not be evaluated.
func (v *Revision) warnOfRules(notes []patch.Note) {
	for _, n := range notes {
		if n.Code == policy.RuleError {
			v.Warnings = append(v.Warnings, patch.Warning{Code: policy.RuleError, Text: n.Text})
		}
	}
}
