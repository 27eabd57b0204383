package main

import (
	"context"
	"os"
	"path/filepath"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/store"
)

// BackupCmd copies the database while servers run.
type BackupCmd struct {
	File string `arg:"" help:"The new file." type:"path"`
}

// Run makes the copy and says how large it is and what it does not hold.
func (c *BackupCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		if err := s.Backup(ctx, c.File); err != nil {
			return console.Fail(console.ExitFailed, "Nothing was copied: %v.", err)
		}
		info, err := os.Stat(c.File)
		if err != nil {
			return err
		}
		if sh.JSON {
			return sh.Document(map[string]any{"file": c.File, "bytes": info.Size(), "dialect": s.Dialect()})
		}
		sh.Hint("The key that signs the history is not in it: copy %s as well. Mirrors and checkouts are made again.", filepath.Join("DATA", "seal.pem"))
		return sh.Say("%s has a copy of the database (%s, %d bytes).", console.Line(c.File), s.Dialect(), info.Size())
	})
}
