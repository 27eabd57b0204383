package client

import (
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"
)

// Answer is what the server said: as values, and as the document that it wrote, which may have fields of later versions.
type Answer[T any] struct {
	Value T
	Raw   json.RawMessage
}

// List is a list, or as many of its pages as were asked for. Raw is the document of one page, or one that joins several.
type List[T any] struct {
	wire.List[T]
	Raw json.RawMessage `json:"-"`
}

// listed reads a list from its document.
func listed[T any](raw json.RawMessage) (List[T], error) {
	l := List[T]{Raw: raw}
	if err := json.Unmarshal(raw, &l.List); err != nil {
		return l, fmt.Errorf("read a list: %w", err)
	}
	return l, nil
}

// Event is one fact. N and Cursor are 0 and "" for what is not stored.
type Event struct {
	event.Event
	Cursor string          `json:"-"` // the SSE id, where it came by a stream
	Raw    json.RawMessage `json:"-"` // as the server wrote it
}

// Life is how long a written value stays: TTL in whole seconds, else Never, else what the
// server has for the namespace. Extend pushes an existing expiry only forward.
type Life struct {
	TTL    time.Duration
	Never  bool
	Extend bool
}
