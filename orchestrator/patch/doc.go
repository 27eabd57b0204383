// Package patch is everything that Gatehouse knows about git: mirrors, checkouts,
// snapshots, the strict diff parser, validation, the review model, revisions and
// landing. It is the only caller of the git program.
//
// What people approve is a tree, not a text. So every function here takes and
// returns object ids, and what an agent wrote (a folder or a diff) is only ever
// an input from which the server computes a tree by itself:
//
//	folder ──Snapshot──▶ tree ──Validate──▶ Record (branch, bundle) ──Review──▶ people
//	diff ───ApplyText──▶                                                          │ yes
//	                          source ◀──Land── Intent ◀──PlanLanding──────────────┘
//
// One bare mirror stands in the data folder for each repository; no agent can
// reach it. Bundles, kept by the caller, carry revisions to other nodes.
//
// The package is a leaf: it imports the standard library and third-party
// libraries, knows neither the database nor HTTP, and keeps no state but the
// mirrors' folders.
package patch
