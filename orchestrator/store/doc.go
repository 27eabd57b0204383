// Package store keeps tasks, their events and everything around them in a database. What the
// gate keeps in the same database stands in approval/sqlstore, which is made on kit.go.
//
// One query text serves SQLite and PostgreSQL; what differs stands in sqlite.go and
// postgres.go behind the struct dialect. Every change of a task's tree is made inside
// a transaction that holds the task's row (tx.go): counters, event numbers and hashes
// are exact, and two tasks never wait for each other on PostgreSQL. SQLite has one
// writer. Acts of people that belong to no task are written under the row "system".
//
//	kit.go                for whoever keeps rows of its own beside these, in the same transactions
//	Context()             sharedctx.Store
//	Run                   the listener, the notifier, the sequencer and the follower of this node
//
// A step on a task is one write: it reads from memory (task.go) or without a lock, and is
// written in one statement on PostgreSQL, which is its transaction (postgres.go), and in
// one group of steps that share a commit on SQLite (sqlite.go). The task's version decides
// whether what it read is still true (optimistic.go); where not, it runs again under the row's lock. So no
// result depends on memory alone: a write, or a look at the version, proves it.
//
// The order over all tasks: on SQLite the one writer gives each event its position
// inside the writing transaction. On PostgreSQL the node that holds the lease
// "sequencer" gives positions to what others have committed (event.go), so no
// reader ever looks at a sequence that somebody still writes. A row of event_order is a
// range: the events of one step.
//
// PostgreSQL logs of a changed row what lies between the first and the last column that
// changed. In delegations what steps change stands together, at the end.
//
// Lists, searches and sums of delegations do not read their rows but a projection of them
// (listing.go), so that a step writes no index for lists. One follower of the order over all
// tasks writes it, in batches; the node that orders events does, and the one process of
// SQLite. A list first has listed what is committed by then. A step that changes what lists
// show, and has no event that names the delegation, lists it itself.
//
// The room imports orchestrator and its leaves, and migrations. It alone imports sqlx, pq,
// the SQLite driver and goose. Only cmd and approval/sqlstore import it.
package store
