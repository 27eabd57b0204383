// Package policy says which rule decides on a patch or on a hand-over, how many people it
// asks, and of which groups. It computes: the gate gives it facts, and carries out the Ruling.
//
// rule.go is a rule as it was when it matched; policy.go compiles the rules of the
// configuration and evaluates them on Facts (facts.go); strictest.go is for a tree that
// several agents worked on, rule.go for a rule that cannot be evaluated, handover.go for the
// rules about hand-overs (what a no does there: rule.go). limits.go bounds what an
// expression may compute, status.go says what is wrong with one.
//
// It may import the leaves of orchestrator, and neither the gate nor a channel.
package policy
