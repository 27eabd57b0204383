package llm

import (
	"context"
	"encoding/json"

	"gatehouse/orchestrator/agent"
)

// Call is a tool's call as hooks see it.
type Call struct {
	ID      string
	Tool    string // may be unknown
	Input   json.RawMessage
	Blocked bool // a hook refused it, so it did not run
	Again   bool // before: what hooks said is known, from before the run waited for its hops
}

// Verdict is what a hook says. The zero value lets the call go on.
type Verdict struct {
	Block string         // before: why the call is not run, as the model reads it
	Note  string         // after: what is added to the result
	Stop  *agent.Failure // after: ends the run, once the results are on record
}

// Hook stands before and after every call of one run (P20). After is called for blocked
// and failed calls, too. One goroutine uses it: first Before for all calls of a message
// in order, then After for all.
type Hook interface {
	Before(ctx context.Context, call Call) Verdict
	After(ctx context.Context, call Call, text string, isError bool) Verdict
}

// hooks are a chain. None at all lets everything go on.
type hooks []Hook

// before asks every hook, so that all of them see every call; the first block holds.
func (h hooks) before(ctx context.Context, call Call) Verdict {
	var first Verdict
	for _, hook := range h {
		if v := hook.Before(ctx, call); first.Block == "" {
			first.Block = v.Block
		}
	}
	return first
}

// after tells every hook, and joins what they say.
func (h hooks) after(ctx context.Context, call Call, a answer) Verdict {
	var all Verdict
	for _, hook := range h {
		v := hook.After(ctx, call, a.Text, a.IsError)
		if v.Note != "" && all.Note != "" {
			all.Note += " "
		}
		all.Note += v.Note
		if all.Stop == nil {
			all.Stop = v.Stop
		}
	}
	return all
}
