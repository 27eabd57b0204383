package main

import (
	"context"
	"strings"

	"gatehouse/web/client"
)

// CancelCmd stops a tree, or with --all everything.
type CancelCmd struct {
	ID     string `arg:"" optional:"" help:"An id, or its last 6 characters or more."`
	All    bool   `help:"Stop everything that runs or waits; for admins. It is counted first."`
	Agent  string `help:"With --all: only the work of this agent, and what is below it." placeholder:"NAME"`
	Reason string `help:"Why; it is stored with who cancelled, for everybody who looks later." placeholder:"TEXT"`
	Yes    bool   `help:"With --all: do not ask. Needed where standard input is no terminal."`
}

// Run cancels it and says so.
func (c *CancelCmd) Run(ctx context.Context, sh *shell) error {
	switch {
	case c.All && c.ID != "":
		return usage("--all stops everything, and %s is one task. Leave one of them out.", line(c.ID))
	case c.All:
		return c.all(ctx, sh)
	case c.ID == "":
		return usage("Say what to cancel: an id, or --all for everything that runs or waits.")
	case c.Agent != "" || c.Yes:
		return usage("--agent and --yes go with --all. Leave them out to cancel %s.", line(c.ID))
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	d, err := api.Cancel(ctx, c.ID, c.Reason)
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
	hint := "  follow: gatehouse wait " + handle(d)
	if d.Message != "" {
		hint = line(d.Message) + hint
	}
	return changed(sh, d, hint)
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
