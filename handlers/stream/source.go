package stream

import (
	"context"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// source reads one stream of the log: events after a cursor, ascending.
type source interface {
	read(ctx context.Context, after int64, limit int) ([]frame, error)
	newest(ctx context.Context) (int64, error)
	watch() *event.Subscription
	// listen hears the parts of messages that are being written; nil where there are none.
	listen() *event.Listener
	// grown is closed when there is more than before; nil when the notices say it all.
	grown() <-chan struct{}
	// late says that an event may get its cursor some time after its notice, and that
	// nobody tells when.
	late() bool
}

// taskSource is the log of one task.
type taskSource struct {
	reader orchestrator.Reader
	hub    *event.Hub
	taskID string
}

func (s taskSource) grown() <-chan struct{}     { return nil }
func (s taskSource) late() bool                 { return false }
func (s taskSource) watch() *event.Subscription { return s.hub.Watch(s.taskID, 16) }
func (s taskSource) listen() *event.Listener    { return s.hub.Listen(s.taskID, keepParts) }

func (s taskSource) newest(ctx context.Context) (int64, error) {
	t, err := s.reader.Task(ctx, s.taskID)
	return t.LastN, err
}

func (s taskSource) read(ctx context.Context, after int64, limit int) ([]frame, error) {
	events, err := s.reader.Events(ctx, s.taskID, after, limit)
	if err != nil {
		return nil, err
	}
	frames := make([]frame, len(events))
	for i, e := range events {
		if frames[i], err = newFrame(e.N, 0, e); err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// allSource is the order over all tasks.
type allSource struct {
	reader orchestrator.Reader
	hub    *event.Hub
	signal func() <-chan struct{}
}

func (s allSource) late() bool { return s.signal == nil }

func (s allSource) grown() <-chan struct{} {
	if s.signal == nil {
		return nil
	}
	return s.signal()
}

func (s allSource) watch() *event.Subscription                { return s.hub.Watch("", 64) }
func (s allSource) listen() *event.Listener                   { return nil }
func (s allSource) newest(ctx context.Context) (int64, error) { return s.reader.LastPosition(ctx) }

func (s allSource) read(ctx context.Context, after int64, limit int) ([]frame, error) {
	found, err := s.reader.Ordered(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	frames := make([]frame, len(found))
	for i, p := range found {
		if frames[i], err = newFrame(p.Pos, p.Pos, p.Event); err != nil {
			return nil, err
		}
	}
	return frames, nil
}
