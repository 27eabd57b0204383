package main

import (
	"context"
	"strings"

	"gatehouse/web/client"
)

// CancelCmd stops a tree.
type CancelCmd struct {
	ID string `arg:"" help:"An id, or its last 6 characters or more."`
}

// Run cancels it and says so.
func (c *CancelCmd) Run(ctx context.Context, sh *shell) error {
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	d, err := api.Cancel(ctx, c.ID)
	if err != nil {
		return err
	}
	return changed(sh, d, "")
}

// RetryCmd runs a failed one again.
type RetryCmd struct {
	ID string `arg:"" help:"An id, or its last 6 characters or more."`
}

// Run queues it again and says how to follow it.
func (c *RetryCmd) Run(ctx context.Context, sh *shell) error {
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	d, err := api.Retry(ctx, c.ID)
	if err != nil {
		return err
	}
	return changed(sh, d, "  follow: gatehouse wait "+handle(d))
}

// changed prints what a delegation has become.
func changed(sh *shell, d client.Delegation, hint string) error {
	if sh.JSON {
		return sh.document(d)
	}
	if err := sh.say("%s %s", line(d.ID), strings.ReplaceAll(line(d.State), "_", " ")); err != nil {
		return err
	}
	if hint != "" {
		sh.hint("%s", hint)
	}
	return nil
}
