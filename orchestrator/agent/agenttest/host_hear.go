package agenttest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator/agent"
)

// Say leaves a message of a person for the run, and returns its id.
func (h *Host) Say(from, text string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said++
	m := agent.PersonMessage{ID: fmt.Sprintf("msg_%d", h.said), From: from, Text: text, At: time.Now()}
	h.unread = append(h.unread, m)
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
	return m.ID
}

// Unread returns what was said and not told.
func (h *Host) Unread(ctx context.Context) ([]agent.PersonMessage, error) {
	if err := h.enter(ctx, "Unread"); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.unread), nil
}

// Hear takes what was said and not told.
func (h *Host) Hear(ctx context.Context, wait bool) ([]agent.PersonMessage, error) {
	for {
		if err := h.enter(ctx, "Hear"); err != nil {
			return nil, err
		}
		h.mu.Lock()
		now := h.unread
		h.unread = nil
		if h.more == nil {
			h.more = make(chan struct{})
		}
		more := h.more
		h.mu.Unlock()
		if len(now) > 0 || !wait {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-more:
		}
	}
}
