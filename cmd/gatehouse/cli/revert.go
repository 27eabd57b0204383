package cli

import (
	"context"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// RevertCmd undoes what has landed.
type RevertCmd struct {
	ID string `arg:"" help:"A landed request's id, or a task's when one of its requests has landed."`
}

// Run asks for the revert, which is a task whose change people decide on.
func (c *RevertCmd) Run(ctx context.Context, sh *console.Shell) error {
	var r client.Answer[wire.Request]
	return act(ctx, sh, func(api *client.Client) (sent client.Answer[wire.Submitted], err error) {
		if r, err = findRequest(ctx, sh, api, c.ID, "landed"); err != nil {
			return sent, err
		}
		return api.Revert(ctx, r.Value.ID)
	}, func(api *client.Client, sent wire.Submitted) error {
		if err := sh.Say("%s undoes %s on %s, once it is approved", console.Line(sent.ID), console.Abbreviated(r.Value.Commit), console.Line(r.Value.Target)); err != nil {
			return err
		}
		howToFollow(sh, api, sent.ID)
		return nil
	})
}
