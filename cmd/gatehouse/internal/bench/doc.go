// Package bench measures the engine on a database that it is given: chains of hand-overs
// with guards, events and durable commits, beside bare commits of the same moment, and what
// a question costs that waits for a person. Disks and machines differ, and change their
// pace within minutes: only ratios of one run say something, so each figure stands beside
// its yardstick.
//
// It makes a node of its own whose agents do nothing, and touches nothing else.
//
// May import: orchestrator, its leaves, orchestrator/store, approval.
package bench
