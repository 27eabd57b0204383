// Package approval is the gate: every patch stops here until people, or a rule, say yes.
// It has requests with their revisions and decisions, the channels that show requests as
// cards, and the outbox that keeps every card in step with its request.
//
// The rooms, and the way of one request through them:
//
//	orchestrator ──Ask──▶ approval ──facts──▶ policy: which rule decides, how many people it asks
//	                         │  ▲
//	                         │  └──Decide──┐
//	                         ├──cards──▶ outbox ──Deliver──▶ passive, telegram, webhook: the channels (bot: what starts one)
//	                         └──rows───▶ sqlstore: what of this is in the database
//
// What the gate itself has, in the same order:
//
//	ask.go, handover.go   a tree, or a hand-over, is put before people
//	action.go, question.go, grant.go   and so are calls of tools, and questions of agents
//	subject.go            what differs between these kinds; each has a type there, or beside it
//	risk.go               how much care it takes, and what has to be ticked
//	electorate.go, lineage.go, substitute.go   the voters: who may say yes
//	ballot.go, validation.go, shown_revision.go   what they say, and whether it counts
//	decide.go, revise.go  what follows; revise.go for a person's own revision of the patch
//	request.go, revert.go   what the end of its delegation does to it, and undoing what landed
//	drafts.go, threads.go, line_tracking.go, reading.go   remarks, answers to them, what was read
//	deadlines.go          what time does: expiry, reminders, escalation
//	rules_in_force.go, landing_rights.go, overtaken.go   what changes while it waits
//	outbox.go, digest.go, health.go   cards, one message for many, what was given up
//	backtest.go, refusal.go   other rules on the past, and what did not count
//	notice.go             what is said of a request once, and the reports: how tasks go on and end
//
// A new channel takes four steps:
//
//  1. A package below this one that implements [Channel], and where it needs them [Addresser],
//     [Noticer] and [Digester]. Its test runs approvaltest.Channel, the contract of them all.
//     Where its other side has no names for messages, Deliver returns the ExternalID of the card as it got it.
//  2. A row in the table of orchestrator/origin/channel.go: its title, what it is for, its words,
//     whether people decide there. Pages, the API and the command line read the row.
//  3. Where it has settings: a bot.Section in that package, and a field for it in Channels of
//     cmd/gatehouse/internal/config/channels.go. The program checks, starts, reloads and shows all of
//     these alike. The Bot of a one-way channel waits in Run, and has no Hook and no Name. A channel
//     whose accounts people link has a line in LinkCmd of cmd/gatehouse/link.go.
//  4. A row for the package among the channels of cmd/gatehouse/internal/house/rules_test.go.
//
// It may import orchestrator and its leaves. It owns the transactions in which a decision is
// taken and calls the named transitions of orchestrator inside them.
package approval
