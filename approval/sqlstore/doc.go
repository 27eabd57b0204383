// Package sqlstore keeps what the gate and its channels have in the database: requests with
// their revisions and decisions, cards, notices, digests, drafts and answers, how far people
// have read, and what Telegram sent and asked.
//
// Its Store is the store of orchestrator with these rows beside it, and its Tx the same
// transaction: a request, what it does to its delegation, and the event that says so are
// committed together. So both the engine and the gate are given this Store:
//
//	store.go      Store and Tx, and what the end of a delegation does to its request
//	request.go, revision.go, decision.go   the request; pending.go what waits
//	card.go, notice.go, digest.go, deadletter.go, health.go   the outbox
//	draft.go, answer.go, reading.go        what people write and read on the way to a verdict
//	listed.go     what lists show of a request and find it by
//	retained.go   what retention does to these rows
//	telegram_*.go the rows of the channel Telegram
//
// Rules stand in approval: this package loads, calls and saves. It may import approval,
// approval/telegram for its rows, and orchestrator with its store.
package sqlstore
