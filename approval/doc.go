// Package approval is the gateway: every patch stops here until people, or a rule,
// say yes. It holds requests with their revisions, decisions, the policy, the
// channels that show requests as cards, and the outbox that keeps every card in
// step with its request.
//
// It may import orchestrator and its leaves. It owns the transactions in which a
// decision is taken and calls the named transitions of orchestrator inside them.
package approval
