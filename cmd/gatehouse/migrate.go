package main

import (
	"context"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/store"
)

// MigrateCmd brings the database to this program's version.
type MigrateCmd struct{}

// Run says which version the database has now.
func (c *MigrateCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		have, _, err := s.Version(ctx)
		if err != nil {
			return err
		}
		if sh.JSON {
			return sh.Document(map[string]any{"dialect": s.Dialect(), "version": have})
		}
		return sh.Say("The database (%s) has version %d, which is the newest.", s.Dialect(), have)
	})
}
