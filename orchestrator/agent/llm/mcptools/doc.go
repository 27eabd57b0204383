// Package mcptools gives a run of a model agent the tools of servers of the Model Context
// Protocol: programs that are started for the run and end with it, or URLs.
//
// What a server says is hostile: names, descriptions, schemas and results are bounded,
// and none of its own tools can pass for one of ours (all begin with mcp_SERVER_). A
// server that cannot be reached, or goes away, costs an answer, never the run. What a
// tool did is at-least-once: a run that was lost in the middle calls it again.
//
// The room may import agent, llm/model and the protocol's SDK.
package mcptools
