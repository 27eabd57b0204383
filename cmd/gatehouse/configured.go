package main

import (
	"context"
	"fmt"
	"path/filepath"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/orchestrator/event"
)

// systemActor is who the audit names for what a server does by itself.
const systemActor = "system"

// record writes into the history that this node takes a configuration, where it differs
// from the one that any node took last.
func (h *house) record(ctx context.Context, c *config.Config, by event.Taken) error {
	by.Node = h.node
	if c.Path != "" {
		by.File = filepath.Base(c.Path)
	}
	if err := h.store.RecordConfiguration(ctx, by, c.Recorded()); err != nil {
		return fmt.Errorf("the configuration could not be recorded: %w", err)
	}
	return nil
}

// reloadFor is reload for a person.
func (h *house) reloadFor(ctx context.Context, actor string) error {
	return h.reload(ctx, event.Taken{Actor: actor, How: "reload"})
}
