// Package insight turns the event log into figures: what was handed on, what it cost, how
// long it took, what was refused. Fold adds events up, Of makes figures of the sums. The
// store keeps the sums of all days, which a Counter adds to; a page folds the events of one task.
//
// Durations are kept in buckets whose bounds grow by the fourth root of two, so a
// percentile is right to about a tenth, whatever the number of events.
//
// The room imports the standard library and the packages event and guard.
package insight
