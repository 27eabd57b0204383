package cli

import (
	"context"
	"fmt"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// RevertCmd undoes what has landed.
type RevertCmd struct {
	ID string `arg:"" help:"A landed request's id, or a task's when one of its requests has landed."`
}

// Run asks for the revert, which is a task whose change people decide on.
func (c *RevertCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	r, err := findRequest(ctx, sh, api, c.ID, "landed")
	if err != nil {
		return err
	}
	got, err := api.Revert(ctx, r.Value.ID)
	return act(sh, got, err, func(sent wire.Submitted) error {
		undone, target := console.Abbreviated(r.Value.Commit), console.Line(r.Value.Target)
		return started(sh, api, sent.ID, fmt.Sprintf("undoes %s on %s, once it is approved", undone, target))
	})
}
