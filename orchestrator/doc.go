// Package orchestrator is the domain: tasks, delegations and their states, the
// engine that moves them, and the workers that run agents.
//
// A delegation is a row and not a goroutine. The states and who moves a delegation
// out of each (delegation.go has the same as data, and a test holds the two together):
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
// awaiting_approval: yes makes it queued, anything else ends it (handover.go).
//
// Where things are, in the order in which a task passes them:
//
//	task, delegation         what is stored, and the states; transition.go is the only file that sets one
//	store                    what the engine asks of a database and of the gate; the codes of errors
//	submit, retry, revise    how tasks begin, and begin anew
//	guards, budget, hop      what a hop is asked before it is made, what it costs, how it is made
//	handover, handed         people asked before work goes on; what goes with it
//	claim, lease, engine     who works on what, and for how long
//	continuation             work that begins in the transaction that makes it due
//	run, checkout, timeout   one attempt: its files, its limits
//	host, conversation       the engine as a running agent sees it; beside them the files
//	                         of its model calls and of the tools and context it shares
//	asks                     what a run asks people before it goes on: calls of tools, questions
//	messages                 what people say to a run while it works
//	await, park              waits for children, with and without a process; beside them
//	                         the file for a program that gives its work away
//	result, checks           what the attempt changed, and how it comes before people
//	landing, lineage         the way onto the branch; who worked on it
//	control                  pause, cancel, stop all
//
// What people and agents type is masked (mask.Text) where it is stored, and again where it is shown.
//
// The room imports its own leaves and no other room; it sees the database as Store
// and the people as Gate.
package orchestrator
