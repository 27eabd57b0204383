package main

import (
	"context"
	"errors"
	"os"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/telemetry"
	"gatehouse/orchestrator/store"
)

// traceName is the lease and the cursor of the node that sends traces.
const traceName = "traces"

// traceLease is how long a node has the sending of traces for itself.
const traceLease = 2 * time.Minute

// sendTraces sends traces of the log until ctx ends, where the environment names a collector.
func (h *house) sendTraces(ctx context.Context) error {
	s := telemetry.FromEnv(os.Getenv)
	if s.Problem != "" {
		h.log.Warn(s.Problem)
	}
	if !s.On {
		return nil
	}
	f, err := telemetry.New(ctx, telemetry.Options{
		Source: traceLog{h.store.Store, h.node}, Latest: s.Latest, Version: thisBuild().Version, Log: h.log,
		Content: func() bool { return h.cfg.File.Telemetry.Content },
		Model:   func(name string) string { spec, _ := h.engine.Config().Agents.Get(name); return spec.Model },
		Kind:    func(name string) string { spec, _ := h.engine.Config().Agents.Get(name); return string(spec.Kind) },
	})
	if err != nil {
		h.log.Error("traces are not sent", "err", err) // nothing else depends on them
		return nil
	}
	return f.Run(ctx)
}

// traceLog is the log as the follower reads it.
type traceLog struct {
	store *store.Store
	node  string
}

// Next returns events behind a position.
func (l traceLog) Next(ctx context.Context, after int64, limit int) ([]telemetry.Positioned, error) {
	events, err := l.store.Ordered(ctx, after, limit)
	found := make([]telemetry.Positioned, len(events))
	for i, e := range events {
		found[i] = telemetry.Positioned{Pos: e.Pos, Event: e.Event}
	}
	return found, err
}

// Subject returns a delegation; one that is gone has its id alone.
func (l traceLog) Subject(ctx context.Context, id string) (telemetry.Subject, error) {
	d, err := l.store.Delegation(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return telemetry.Subject{ID: id}, nil
	}
	s := telemetry.Subject{ID: d.ID, TaskID: d.TaskID, ParentID: d.ParentID, From: d.From, To: d.To, Text: d.Text, Repository: d.Repository, State: string(d.State), Depth: d.Depth,
		Attempt: d.Attempt, CreatedAt: d.CreatedAt, EndedAt: d.EndedAt, InputTokens: d.Usage.InputTokens, OutputTokens: d.Usage.OutputTokens}
	if d.Error != nil {
		s.ErrorCode, s.ErrorMessage = d.Error.Code, d.Error.Message
	}
	return s, err
}

// Begin is the cursor; without one it is set to the end of the log, so that no history is sent.
func (l traceLog) Begin(ctx context.Context) (int64, error) {
	pos, _, err := l.store.Cursor(ctx, traceName)
	if err != nil || pos > 0 {
		return pos, err
	}
	last, err := l.store.LastPosition(ctx)
	if err != nil || last == 0 {
		return 0, err
	}
	return last, l.store.MoveCursor(ctx, traceName, 0, last, time.Now())
}

// Came moves the cursor.
func (l traceLog) Came(ctx context.Context, from, to int64, at time.Time) error {
	return l.store.MoveCursor(ctx, traceName, from, to, at)
}

// Mine takes or keeps the lease.
func (l traceLog) Mine(ctx context.Context) (bool, error) {
	return l.store.Lease(ctx, traceName, l.node, traceLease)
}

// Grown is closed when events were added.
func (l traceLog) Grown() <-chan struct{} { return l.store.Grown().Changed() }
