package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

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
	return &console.Failure{Code: console.ExitUsage, Message: console.Capital(console.Line(err.Error())), Cause: err}
}

// quiet keeps log lines from standing between a command's own.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// coded maps what the store answers to an exit code.
func coded(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, orchestrator.ErrNotFound):
		return &console.Failure{Code: console.ExitNotFound, Message: console.Capital(console.Line(err.Error())), Cause: err}
	case orchestrator.CodeOf(err) == orchestrator.CodeBadRequest:
		return &console.Failure{Code: console.ExitUsage, Message: console.Capital(console.Line(err.Error())), Cause: err}
	}
	return err
}
