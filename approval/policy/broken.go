package policy

import (
	"fmt"

	"gatehouse/orchestrator/patch"
)

// strictestOf is said, or what the strictest rule that asks people says, whether it matches
// or not. It holds where some rule could not be evaluated: what an agent makes may be the
// reason, so that a rule that breaks never leads to fewer or other people.
func (p *Policy) strictestOf(said Ruling, trial bool) Ruling {
	for _, r := range p.list() {
		if r.Shadow && !trial || r.Deny || r.need == 0 {
			continue
		}
		if rule := r.said(p.version); rule.stricter(said.Rule) {
			said.Rule, said.Deny, said.Expires = rule, false, r.Expires
		}
	}
	return said
}

// said is the rule as it is stored with what it decides.
func (r rule) said(version string) Rule {
	return Rule{Name: r.Name, When: r.When, Need: r.need, From: append([]string{}, r.From...), Deny: r.Deny, OnNo: r.OnNo, Version: version}
}

// RuleError is the code of the note, and of the warning, that a rule could not be evaluated.
const RuleError = "rule_error"

func ruleError(r rule, err error) patch.Note {
	return patch.Note{Code: RuleError, Text: fmt.Sprintf("Rule %q could not be evaluated (%v), so people decide, as the strictest rule asks for.", r.Name, err)}
}
