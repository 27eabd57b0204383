// Command gatehouse is the whole product in one program: the server, the demo and
// the command line. It may import every room and is where they are joined: house.go
// makes the rooms, serve.go opens the doors, grammar.go lists all subcommands. Those
// that speak to a server are package cli; the others have a file each here.
//
// The house, from the doors inwards; an arrow of imports never runs up:
//
//	cmd/gatehouse   wiring; cli below it knows the API and nothing of the engine
//	web             the server: every route in one table, who may use it; client and wire
//	                are the API's other end
//	handlers        what answers: pages by subject, api, stream, hook
//	views, static   what is drawn: pages by the same subjects, styles and scripts
//	approval        the gate: policy, decisions, channels; sqlstore has its rows
//	orchestrator    tasks, delegations, their transitions, the engine; below it
//	                agent (kinds), patch (git), trigger, record (events), guard, budget …
//	orchestrator/store, migrations   the database, as engine and gate see it
//
// Follow one delegation, each room once; a room's doc.go goes on from here:
//
//  1. handlers/hook/hook.go: Hooks.Call reads a delivery.
//  2. orchestrator/trigger/intake/receive.go: Hook.Receive verifies it and makes a task of it.
//  3. orchestrator/submit.go: Engine.Submit asks the guards, writes row and event. Then
//     orchestrator/claim.go, orchestrator/run.go and orchestrator/result.go: claim, runAgent, finish.
//  4. orchestrator/agent/command/runner.go: Runner.Run starts the program in its checkout.
//  5. orchestrator/patch/validate.go: Mirror.Validate judges the tree. When people have said
//     yes, orchestrator/patch/land.go: Mirror.Land moves the branch.
//  6. approval/ask.go: Gateway.Ask matches the rule and fills the outbox (approval/outbox.go).
//     approval/decide.go: Gateway.Decide counts the yes.
//  7. approval/telegram/channel.go: Channel.Deliver shows the card. The tap comes to
//     approval/telegram/desk.go: Desk.Handle.
//  8. handlers/audit/audit.go: the trail, months later.
//
// What is added most often, and where (a channel: approval/doc.go; a kind of agent: orchestrator/agent/doc.go):
//
//	an event type  a constant, struct and sentence in one of orchestrator/record/event/of_*.go, a line in
//	               orchestrator/record/event/kinds.go, and who appends it. The command line says in
//	               cmd/gatehouse/cli/watch_words.go only what it says shorter.
//	a column       the same next number in migrations/sqlite and migrations/postgres (migrations/embed.go has
//	               the rules), then select, insert, scan and args in the row's file of the store.
//	a field of a   web/wire, handlers/api/tasks.go, orchestrator/task.go, orchestrator/submit.go, its column; of
//	task           its request, too: approval/request.go, approval/sqlstore/request.go, handlers/api/approvals.go,
//	               reviewHead in handlers/review/review.go, views/review, cmd/gatehouse/cli/review.go.
//	a page         a templ file in views; make generate writes the Go beside it.
package main
