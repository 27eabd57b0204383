// Package approval is the gate: every patch stops here until people, or a rule, say yes.
// It has requests with their revisions and decisions, the channels that show requests as
// cards, and the outbox that keeps every card in step with its request.
//
// Where things are, along the way of one request:
//
//	ask.go, facts.go      a tree is put before people; package policy says which rule decides
//	risk.go               how much care it takes, and what has to be ticked
//	lineage.go, substitute.go, electorate.go   who may say yes
//	ballot.go, validation.go, shown_revision.go   what they say, and whether it counts
//	decide.go, revise.go  what follows; revise.go for a person's own revision of the patch
//	close.go, revert.go   what the end of its delegation does to it, and undoing what landed
//	drafts.go, threads.go, line_tracking.go, reading.go   remarks, answers to them, what was read
//	deadlines.go          what time does: expiry, reminders, escalation
//	recipients.go, rules_in_force.go, landing_rights.go, overtaken.go   what changes while it waits
//	outbox.go, notice.go, digest.go, health.go   cards, what is said once, one message for many
//	backtest.go, refusal.go   other rules on the past, and what did not count
//
// What of this is in the database stands in approval/sqlstore. A channel is a package below
// this one that implements Channel: passive has the two with nothing to send. approvaltest is
// the contract that each passes.
//
// It may import orchestrator and its leaves. It owns the transactions in which a decision is
// taken and calls the named transitions of orchestrator inside them.
package approval
