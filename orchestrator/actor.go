package orchestrator

import "strings"

// RuleActor begins the name under which a rule decides, in events and as a decision's user.
const RuleActor = "rule:"

// ByRule is the rule's own name in the name of who decided; false for a person.
func ByRule(actor string) (rule string, ok bool) { return strings.CutPrefix(actor, RuleActor) }
