package orchestrator

import "gatehouse/orchestrator/record/event"

// Hand is what went along with a hand-over.
type Hand struct {
	Text      string   // its beginning, HandText characters at most
	Artifacts []string // names of what was handed over beside the text, in order
}

// HandText is how much of a hand-over's text a Hand has, in characters.
const HandText = 400

// EventFilter chooses events of one task; zero values choose everything.
type EventFilter struct {
	Types       []event.Type
	Delegations []string // of these only; the task's own events have none
	Has         string   // what the data must have in it, as it stands
	After       int64    // n > After
	Before      int64    // n < Before; 0: up to the newest
	Limit       int      // at least 1
	Newest      bool     // newest first, else oldest first
}
