// Package approval is the gateway: every patch stops here until people, or a rule,
// say yes. It holds requests with their revisions, decisions, the policy, the
// channels that show requests as cards, and the outbox that keeps every card in
// step with its request.
//
// Where things are, along the way of one request: ask.go puts a tree before people,
// package policy says which rule decides by facts.go, risk.go how much care it
// takes, lineage.go, seat.go and electorate.go say who may, ballot.go is what they say,
// judge.go whether it counts, decide.go what follows; revise.go is for a person's own
// revision of the patch, and drafts.go for comments that were not sent yet. sweep.go and
// remind.go carry out what time does: expiry, reminders, escalation. outbox.go delivers
// cards, notice.go what is said once, digest.go one message in place of a flood;
// health.go tells how the channels do and what was given up. backtest.go tries other
// rules on the past, revert.go undoes what landed, refused.go records what did not count.
//
// What of this is in the database stands in approval/sqlstore. close.go is what the end of a
// delegation does to its request. A channel is a package below this one that implements Channel, and passive the two with nothing to send; approvaltest is the
// contract that each passes.
//
// It may import orchestrator and its leaves. It owns the transactions in which a
// decision is taken and calls the named transitions of orchestrator inside them.
package approval
