// Package retention is what is removed when it is old, and what a legal hold keeps.
//
// What goes: the texts of ended tasks (what was asked, answered, said and printed), the data
// of their events, their conversations, the bundles of their patches, and the bodies of
// webhooks. What stays for ever: who asked, who worked, who decided, when, where, by which
// rule, on which digest, with which outcome and cost, and every hash, so that the history
// still verifies.
//
// The store removes, a Run in batches and by the rules, and housekeeping says when. The room imports only the standard
// library.
package retention
