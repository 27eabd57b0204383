package main

import (
	"context"
	"os"
	"path/filepath"

	"gatehouse/orchestrator/store"
)

// BackupCmd copies the database while servers run.
type BackupCmd struct {
	File string `arg:"" help:"The new file." type:"path"`
}

// Run makes the copy and says how large it is and what it does not hold.
func (c *BackupCmd) Run(ctx context.Context, sh *shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		if err := s.Backup(ctx, c.File); err != nil {
			return fail(exitFailed, "Nothing was copied: %v.", err)
		}
		info, err := os.Stat(c.File)
		if err != nil {
			return err
		}
		if sh.JSON {
			return sh.document(map[string]any{"file": c.File, "bytes": info.Size(), "dialect": s.Dialect()})
		}
		sh.hint("The key that signs the history is not in it: copy %s as well. Mirrors and checkouts are made again.", filepath.Join("DATA", "seal.pem"))
		return sh.say("%s has a copy of the database (%s, %d bytes).", line(c.File), s.Dialect(), info.Size())
	})
}
