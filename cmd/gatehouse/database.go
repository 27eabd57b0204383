package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/store"
)

// cliActor is who the audit names for what is done on the machine itself.
const cliActor = "cli"

// withStore opens the database that --config names, migrates it, and closes it again.
// It works while the server runs: both are clients of the same database.
func withStore(ctx context.Context, sh *shell, use func(*store.Store) error) error {
	cfg, err := sh.part("database")
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
	return &failure{code: exitUsage, message: capital(line(err.Error())), cause: err}
}

// quiet keeps log lines from standing between a command's own.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// coded maps what the store answers to an exit code.
func coded(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, orchestrator.ErrNotFound):
		return &failure{code: exitNotFound, message: capital(line(err.Error())), cause: err}
	case orchestrator.CodeOf(err) == orchestrator.CodeBadRequest:
		return &failure{code: exitUsage, message: capital(line(err.Error())), cause: err}
	}
	return err
}
