// Package stream sends events as they happen, by SSE and by WebSocket.
//
// The log is the truth and the hub only a hint: a tail (tail.go) follows one task,
// or all of them, for every reader in this process at once. It reads each event
// once, encodes it once and keeps the newest ones; a reader takes what follows its
// own cursor from there, or from the store where it is too far behind. So every
// reader gets every event exactly once and in order, however slow it is, and a slow
// one costs nobody anything: a write that takes too long ends its connection, and
// the next one resumes by its cursor.
//
// A connection is a line (line.go), whose handler has returned: one goroutine, which waits
// for the client. What it reads is a subscription (subscription.go). That is parked while
// there is nothing new; then the tail's shards (shard.go) write to all that are parked, and
// whichever would make them wait catches up in a goroutine of its own. keepalive.go sends the
// heartbeats, and ends lines with their sessions.
//
// Cursors are the event's number n in a task's stream, and the position in the order
// over all tasks in the global one.
//
// message.delta has neither and is not replayed (passing.go). It goes to the streams of
// a task only, in its place among the events: never behind the event of the turn that it
// is a part of. Who comes in the middle of a turn gets what was written so far; who
// reads too slowly misses parts and no event, and sees it by their offset.
package stream
