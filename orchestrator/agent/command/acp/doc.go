// Package acp speaks the Agent Client Protocol with a program over its standard input and
// output: one session, the task as its prompt, and the last message of the turn as the answer.
//
//	initialize ─▶ session/load or session/new ─▶ session/set_mode ─▶ session/prompt ─▶ answer
//	                                    session/update (text, plan, tool calls) ◀──┤
//	                                    session/request_permission ◀───────────────┤
//	                                    session/cancel, when the run is over ──────▶
//
// What the program writes is hostile: lines, texts, calls and questions are bounded, unknown
// updates are passed over, and a request that waits for a person keeps nothing else waiting.
//
// A person's no has no words in this protocol. So what people said is the next prompt of the
// session, and so is the input that a person made of a call: made again with it, the call
// passes once.
//
// The rooms that it may import are package agent, leaves for texts and strict JSON, and the
// protocol's Go client.
package acp
