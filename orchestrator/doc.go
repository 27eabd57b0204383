// Package orchestrator is the domain: tasks, delegations and their states, the
// engine that moves them, and the workers that run agents.
//
// A delegation is a row and not a goroutine. The states and who moves a delegation
// out of each (state.go has the same as data, and a test holds the two together):
//
//	queued ──claim──▶ running ──delegate──▶ waiting ──last child ended──▶ queued
//	  │ ▲                │ └──tree changed──▶ checking ──▶ awaiting_approval ──yes──▶ landing ──▶ completed
//	  │ │                │                       ▲          │  ▲ │ │               │
//	  │ └─lease lost─────┤                       └──revised─┤  │ │ │               │
//	  │                  │                 changes asked: ──┘  │ │ └─no──▶ rejected│
//	  │                  │                 queued, next rev.   │ └─late──▶ expired  │
//	  │                  └──answer, nothing changed──▶ completed└──base moved: asked again (stale)
//	  └──cancel──▶ cancelled ◀──cancel── (every live state but landing after its intent)   any live ──error──▶ failed
//
// A hand-over that a person is asked about first (H18) is a child born in
// awaiting_approval: yes makes it queued, anything else ends it (ask.go).
//
// Where things are: work.go has the engine's own state of a delegation, submit.go makes tasks, delegate.go makes hops, transition.go has
// the ends, transition_run.go and transition_gate.go the transitions of runs and around people, claim.go and lease.go say who works on what, worker.go runs an
// attempt, host.go is the engine as a running agent sees it, await.go how it waits for children, tree.go takes the
// result's tree, check.go puts it before people, revise.go takes the trees that people
// make of it, land.go lands it; cancel.go, pause.go, retry.go and fork.go do what they say.
//
// What a model said is stored turn by turn (conversation.go, turns.go). question.go is
// what the guards are asked, ledger.go moves budgets, breaker.go counts failures, park.go
// and spawn.go know who waits for whom, handoff.go lets a program give its work away and
// carried.go says what goes with it, baton.go begins work in the transaction that
// makes it due, shared.go is the shared context as a run sees it.
//
// The room imports its own leaves and no other room; it sees the database as Store
// and the people as Gate.
package orchestrator
