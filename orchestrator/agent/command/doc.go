// Package command runs an agent that is any program: the task goes in on standard
// input, the answer comes out on standard output, and what the program changed in
// its checkout is the patch. With protocol "jsonl" it speaks lines of JSON instead, and with
// protocol "acp" the Agent Client Protocol, of which package acp below this one knows.
//
// Three processes stand in a row:
//
//	server ──▶ supervisor (gatehouse supervise) ──▶ [bwrap ──▶] program ──▶ whatever it starts
//
// The supervisor adopts every orphan below it and holds a pipe from the server.
// When the pipe closes, because the run was stopped or because the server was
// killed, or when the program ends, it kills all that is left below it. Only then
// does the run count as ended. Nothing of this is in a file that could go stale.
//
// A program is confined by bubblewrap where that works, else by Landlock, else by
// nothing, and the Host is told which. The process that becomes the program (gatehouse
// supervise enter) puts Landlock, limits and network: off on itself, so that the supervisor
// stays out of the program's reach. Confined, it reads the file system but for
// the server's data and the usual places of credentials, and writes its checkout,
// its scratch folder, /tmp of its own (bubblewrap), the folders declared as
// writable, and caches that no other agent writes (caches.go): who reads a cache runs what
// is in it. A check has those of the agents whose change it runs, never a run's. ~/.cache
// and the caches of the person who runs the server are read only. Agents that run the same
// tool share its state folder, unless HOME under `env` gives each its own. The network stays open, unless the agent has network: off: a model is reached over it.
//
// With protocol "jsonl" standard input begins with the task, and every line of
// standard output is one of the others; lines of standard error are progress.
//
//	{"type":"task","text":"…","feedback":{…},"handover":{…}}      read first; feedback after "request changes", handover
//	                                                              where work was handed over, fallback {"to","id","error"}
//	                                                              where this program's own hand-over failed, attachments
//	                                                              [{"name","media_type","size","sha256","path"}] that came along
//	{"type":"progress","text":"…"}                                shown to whoever watches
//	{"type":"usage","input_tokens":1,"output_tokens":1,"usd":0.1} added up
//	{"type":"context","namespace":"…","key":"…","value":"…","ttl_seconds":60}
//	{"type":"delegate","to":"reviewer","text":"…","ref":"r1"}     hands on; several may be open at once
//	{"type":"result","ref":"r1","state":"completed","text":"…","usage":{…},"error":null}   read: the answer to a delegate;
//	                                                              commit and pushed where its change landed, or on which branch it waits
//	{"type":"message","id":"msg_…","from":"ann","text":"…","at":"…"}  read: what a person says meanwhile; skip it where it does not matter
//	{"type":"spawn","to":"helper","text":"…","ref":"s1"}          hands on without waiting
//	{"type":"spawned","ref":"s1","id":"dlg_…","to":"helper"}      read: at once; a result follows when it has ended
//	{"type":"wait"}                                               until all that was spawned has ended: no slot is held
//	{"type":"ask","question":"…","choices":["red","blue"],"to":"maintainers","ref":"q1"}   asks people; choices and to may be left out
//	{"type":"answer","ref":"q1","state":"answered","text":"blue","by":"ann"}   read: or refused or expired, with why
//	{"type":"handoff","to":"coder","text":"…","context":{},"completed":"…","artifacts":{"Plan":"plan.md"},"workflow_state":{}}
//	                                                              gives the rest away and ends this program: the answer
//	                                                              is coder's; a refusal is read like that of a delegate
//	{"type":"result","text":"…","data":{},"artifacts":[],"patch":"…"}          the answer; patch in place of changes
//
// The room is for Linux. It may import package agent, package acp below it, leaves for texts
// and strict JSON, the standard library, go-landlock and golang.org/x/sys.
package command
