// Package housekeeping is when the record is kept in order: on one node at a time it seals the history, has removed what
// expired and what retention takes, and says that its node lives.
//
// The loop knows when; what it does beside sealing it is given. What fails is tried again at the next tick, as nothing
// depends on when.
//
// May import: record/proof.
package housekeeping
