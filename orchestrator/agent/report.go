package agent

import "encoding/json"

// Report is what a program tells of its work while it is at it, for the record. One of Call,
// Plan and Asked is set.
type Report struct {
	Call *ToolCall
	Plan []PlanStep // the whole plan as it is now
	// Asked says, once the program has made calls of tools, whether it asked about any of them
	// first. One that did not is held by its own sandbox and ours alone.
	Asked *bool
}

// ToolCall is a call of a tool that a program makes by itself.
type ToolCall struct {
	ID    string
	Tool  string
	Title string // what it does, in the program's words
	Input json.RawMessage
	Ended bool // of the fields below none is set before
	OK    bool
	Text  string
	Diffs []FileDiff
}

// FileDiff is what a call changes in a file, or in a part of one.
type FileDiff struct {
	Path string
	Old  string // "" for a new file
	New  string
}

// PlanStep is a step of a plan. State is pending, in_progress or completed.
type PlanStep struct {
	Text  string
	State string
}
