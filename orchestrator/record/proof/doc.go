// Package proof is how history proves itself to somebody who has nothing but a file: the
// checkpoints that seal the order of events, the bundle that an export is, and its
// verification.
//
// A bundle is JSON lines, one event a line; the last line is a seal that is signed with
// the server's key and covers every byte before it. It carries, where it can, the
// checkpoints that the server signed long before the export: they show that the end of a
// task's history was not cut off before it was exported.
//
// The room is pure. It imports the standard library and package event.
package proof
