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
func (c *PauseCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Pause(ctx, c.ID)
	return act(sh, got, err, func(d wire.Delegation) error {
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
func (c *ResumeCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Resume(ctx, c.ID)
	return act(sh, got, err, func(d wire.Delegation) error {
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
func (c *ForkCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Fork(ctx, c.ID, c.Turn)
	return act(sh, got, err, func(t wire.Submitted) error {
		return started(sh, api, t.ID, "sent to "+console.Line(t.Agent))
	})
}
