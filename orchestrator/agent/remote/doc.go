// Package remote is the kind of agent that works elsewhere: another system that speaks
// A2A, the Agent2Agent protocol (versions 1.0 and 0.3, JSON-RPC or HTTP+JSON).
//
// A run sends the task as one message, waits for the acknowledgement (A34), follows the
// work by stream where the agent's card has streaming, else by asking every 3 s (A31),
// and brings the answer home:
//
//	card → message (acknowledged: turn 1) → stream | poll → task ended (turn 2) → Result
//
// The two turns make it durable. A run that begins anew finds turn 1 and goes on watching
// the same task; it finds turn 2 and has the answer. Where it was lost before turn 1, it
// looks for the task by the context id, which is made of the delegation's id and its
// generation, and then sends the same message id again. An agent that can neither list
// its tasks nor tells messages apart may begin twice in that window; nothing can help it.
//
// Only text goes there: the task, the hand-over, and of the shared context what `reads`
// names for the agent. No files are sent or taken, so a remote agent proposes no patch.
//
// Whatever comes from there is hostile: sizes are bounded, ids are compared, redirects and
// interfaces on another host than the configured one are refused, and the token goes
// nowhere else. Usage is read from the task's metadata (key usage: input_tokens,
// output_tokens, usd); what is missing or absurd counts as all that is left.
//
// The room may import package agent, the A2A library and the standard library.
package remote
