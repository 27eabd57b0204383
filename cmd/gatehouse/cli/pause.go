package cli

import (
	"context"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// PauseCmd holds a task.
type PauseCmd struct {
	ID string `arg:"" help:"An id, or its last 6 characters or more."`
}

// Run holds it and says how it goes on.
func (c *PauseCmd) Run(ctx context.Context, sh *console.Shell) error {
	return act(ctx, sh, func(api *client.Client) (client.Answer[wire.Delegation], error) { return api.Pause(ctx, c.ID) }, func(_ *client.Client, d wire.Delegation) error {
		if err := sh.Say("%s paused", console.Line(d.TaskID)); err != nil {
			return err
		}
		sh.Hint("  go on: gatehouse resume %s", handle(d))
		return nil
	})
}

// ResumeCmd lets a paused task go on.
type ResumeCmd struct {
	ID string `arg:"" help:"An id, or its last 6 characters or more."`
}

// Run lets it go on.
func (c *ResumeCmd) Run(ctx context.Context, sh *console.Shell) error {
	return act(ctx, sh, func(api *client.Client) (client.Answer[wire.Delegation], error) { return api.Resume(ctx, c.ID) }, func(_ *client.Client, d wire.Delegation) error {
		if err := sh.Say("%s goes on", console.Line(d.TaskID)); err != nil {
			return err
		}
		sh.Hint("  follow: gatehouse wait %s", handle(d))
		return nil
	})
}

// ForkCmd makes a task that goes on from a turn of a model's conversation.
type ForkCmd struct {
	ID   string `arg:"" help:"An id, or its last 6 characters or more."`
	Turn int    `help:"The last turn that is kept; without it the newest."`
}

// Run makes it and prints what send prints.
func (c *ForkCmd) Run(ctx context.Context, sh *console.Shell) error {
	return act(ctx, sh, func(api *client.Client) (client.Answer[wire.Submitted], error) { return api.Fork(ctx, c.ID, c.Turn) }, func(api *client.Client, t wire.Submitted) error {
		if err := sh.Say("%s sent to %s", console.Line(t.ID), console.Line(t.Agent)); err != nil {
			return err
		}
		howToFollow(sh, api, t.ID)
		return nil
	})
}
