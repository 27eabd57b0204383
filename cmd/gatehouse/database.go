package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/store"
)

// cliActor is who the audit names for what is done on the machine itself.
const cliActor = "cli"

// withStore opens the database that --config names, migrates it, and closes it again.
// It works while the server runs: both are clients of the same database.
func withStore(ctx context.Context, sh *console.Shell, use func(*store.Store) error) error {
	cfg, err := partOf(sh, "database")
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, cfg.Database, store.Options{Node: cliActor, Logger: quiet()})
	if err != nil {
		return databaseError(ctx, err)
	}
	return errors.Join(use(s), s.Close())
}

// databaseError is a matter of configuration: nothing was asked that could be answered.
func databaseError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return exits(console.ExitUsage, err)
}

// exits ends the program with a code and what the error says.
func exits(code int, err error) error {
	return &console.Failure{Code: code, Message: console.Capital(console.Line(err.Error())), Cause: err}
}

// quiet keeps log lines from standing between a command's own.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// coded maps what the store answers to an exit code.
func coded(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, orchestrator.ErrNotFound):
		return exits(console.ExitNotFound, err)
	case orchestrator.CodeOf(err) == orchestrator.CodeBadRequest:
		return exits(console.ExitUsage, err)
	}
	return err
}

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
		sh.Hint("The key that signs the history is not in it: copy %s as well. Mirrors and checkouts are made again.", filepath.Join("DATA", "seal.pem"))
		copied := map[string]any{"file": c.File, "bytes": info.Size(), "dialect": s.Dialect()}
		return sh.Answer(copied, "%s has a copy of the database (%s, %d bytes).", console.Line(c.File), s.Dialect(),
			info.Size())
	})
}

// MigrateCmd brings the database to this program's version.
type MigrateCmd struct{}

// Run says which version the database has now.
func (c *MigrateCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		have, _, err := s.Version(ctx)
		if err != nil {
			return err
		}
		return sh.Answer(map[string]any{"dialect": s.Dialect(), "version": have},
			"The database (%s) has version %d, which is the newest.", s.Dialect(), have)
	})
}

// ReindexCmd makes the listing of delegations anew.
type ReindexCmd struct{}

// Run tells how far it is, and how many delegations lists have now.
func (c *ReindexCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		n, err := s.Reindex(ctx, func(done int64) { sh.Hint("%d delegations are listed.", done) })
		if err != nil {
			return err
		}
		return sh.Answer(map[string]any{"dialect": s.Dialect(), "delegations": n},
			"Lists and searches are made anew, of %d delegations.", n)
	})
}
