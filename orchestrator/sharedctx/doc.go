// Package sharedctx is the shared context: namespaced values with an author and a
// life span, which agents write for one another (K17–K43).
//
// It holds what an entry may be, when it has expired and how reads are merged; the
// SQL stands elsewhere, behind Store. Life spans are seconds everywhere; only the
// source of K39 counted minutes (X7), and its figure is converted here once.
//
// A write that names no life span never expires (K29), unless the configuration gives
// its namespace one (context.ttl). The sources' presets have names (Named) and apply
// only where they are asked for. Reading extends the life of memory, memory:{agent},
// and of nothing else (Prolongs): a finding that is stale after a deploy stays so.
//
// The room may import the standard library and textcut.
package sharedctx
