package sharedctx

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Namespaces and keys with an owner. All others are anybody's.
const (
	// MemoryPrefix begins an agent's own memory, memory:{agent} (K38): only that agent
	// writes there, and others read it only where their reads name it.
	MemoryPrefix = "memory:"
	// HandoffPrefix begins what a task's agents hand on with a hop (H8): it is that
	// task's alone.
	HandoffPrefix = "handoff:"
	// BoardPrefix begins the board of a task (P6, P21b): where its agents leave things for one
	// another when they name no namespace. It is that task's alone.
	BoardPrefix = "task:"
	// RecordPrefix begins the keys under which the engine records delegations in the
	// namespace of their caller (O23). Agents read them and do not write them.
	RecordPrefix = "delegation:"
)

// Memory is the namespace of an agent's own memory.
func Memory(agent string) string { return MemoryPrefix + agent }

// Handoff is the namespace of what a task's agents hand on.
func Handoff(taskID string) string { return HandoffPrefix + taskID }

// Board is the namespace of a task's own board.
func Board(taskID string) string { return BoardPrefix + taskID }

// Who an entry is for (P2).
const (
	ScopeTask  = "task"  // the tree of one task
	ScopeHouse = "house" // all agents and people
)

// ScopeOf is who reads a namespace.
func ScopeOf(namespace string) string {
	if strings.HasPrefix(namespace, BoardPrefix) || strings.HasPrefix(namespace, HandoffPrefix) {
		return ScopeTask
	}
	return ScopeHouse
}

// RecordKey is the key of one delegation's record: delegation:{target}:{timestamp}-{rand},
// the time in milliseconds (O23).
func RecordKey(target string, at time.Time, random string) string {
	return fmt.Sprintf("%s%s:%d-%s", RecordPrefix, target, at.UnixMilli(), random)
}

// Prolongs reports whether reading an entry of the namespace extends its life: that is
// how memory stays that is used (K43). Findings of other namespaces grow stale at their
// time however often they are read (K35, K37).
func Prolongs(namespace string) bool { return strings.HasPrefix(namespace, MemoryPrefix) }

// Rights say what an agent may do with the shared context during one task.
type Rights struct {
	Agent  string
	TaskID string
	Reads  []string // the namespaces that it is given (K27); nil: all
	// Asked is set where people were asked before the work was handed to it: then Reads are
	// all that it is given beside its own memory and what the question had.
	Asked bool
}

// Own are the namespaces that the agent always reads: its memory, its task's board, what
// its task's agents handed on, and the records of its own delegations.
func (r Rights) Own() []string {
	return []string{Memory(r.Agent), Board(r.TaskID), Handoff(r.TaskID), r.Agent}
}

// MayRead returns nil, or why the agent does not read the namespace and what to do.
func (r Rights) MayRead(namespace string) error {
	named := slices.Contains(r.Reads, namespace)
	switch {
	case r.Asked && !named && namespace != Memory(r.Agent) && namespace != Handoff(r.TaskID):
		return fmt.Errorf("people were asked before %s was given this work, and what stands in %q was no part of it. Hand it on as context, or add it to the agent's reads", r.Agent, namespace)
	case slices.Contains(r.Own(), namespace):
		return nil
	case strings.HasPrefix(namespace, HandoffPrefix):
		return fmt.Errorf("%q belongs to another task. %s reads only what its own task handed on: %q", namespace, r.Agent, Handoff(r.TaskID))
	case strings.HasPrefix(namespace, BoardPrefix):
		return fmt.Errorf("%q is the board of another task. %s reads only its own task's: %q", namespace, r.Agent, Board(r.TaskID))
	case strings.HasPrefix(namespace, MemoryPrefix) && !named:
		return fmt.Errorf("%q is another agent's memory, which %s is not given. Name it in the reads of %s", namespace, r.Agent, r.Agent)
	case r.Reads != nil && !named:
		return fmt.Errorf("%s is not given the namespace %q. It reads %s. Add it to the agent's reads", r.Agent, namespace, list(r.Reads))
	}
	return nil
}

// MayWrite returns nil, or why the agent does not write this key and what to do.
func (r Rights) MayWrite(namespace, key string) error {
	switch {
	case strings.HasPrefix(namespace, MemoryPrefix) && namespace != Memory(r.Agent):
		return fmt.Errorf("%q is another agent's memory; %s cannot write there. Write to %q, or to a namespace that both read", namespace, r.Agent, Memory(r.Agent))
	case strings.HasPrefix(namespace, HandoffPrefix) && namespace != Handoff(r.TaskID):
		return fmt.Errorf("%q belongs to another task; %s cannot write there. Write to %q", namespace, r.Agent, Handoff(r.TaskID))
	case strings.HasPrefix(namespace, BoardPrefix) && namespace != Board(r.TaskID):
		return fmt.Errorf("%q is the board of another task; %s cannot write there. Write to %q", namespace, r.Agent, Board(r.TaskID))
	case strings.HasPrefix(key, RecordPrefix):
		return fmt.Errorf("keys that begin with %q are the record of delegations, which only the server writes. Choose another key", RecordPrefix)
	}
	return nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "its own memory only"
	}
	return strings.Join(names, ", ")
}
