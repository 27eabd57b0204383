// Package llm runs agents of kind llm: a model that works with tools until it has an
// answer.
//
// A run is a conversation that is stored message by message (agent.Host.SaveTurn). What
// a run knows it reads from the stored turns, so that a run that begins anew goes on
// behind the last one and no stored turn is asked for again:
//
//	ask ──answer with calls──▶ act ──all results──▶ ask
//	 │                          └──a hop──▶ park ──children ended──▶ act
//	 └──answer without──▶ announce: spawned children told? ──▶ ask
//	                          ├── some still live ──▶ park ──▶ announce
//	                          └── none ──▶ the result
//
// Every call has its result on record (O18). The tools, each in a file of its own with
// its prompt beside it, belong to groups that a policy names (policy.go). Hooks stand
// before and after each call (hook.go); the loop detector is one (loop.go). A
// conversation that is too long is shortened in the view that the model gets, never in
// what is stored (overflow.go).
//
// A tool that was running when its node was lost runs again: those of this package can
// be repeated, and what a program behind MCP did is at-least-once.
//
// The delegating tools are not given to a run that stands alone: when there is one agent
// only, or when the task's tier allows no hand-over (O2, O3, P16).
//
// The room may import agent, budget, mask, outward and llm/model; the program gives it llm/mcptools and what runs
// commands.
package llm
