package main

import (
	"context"
)

// RevertCmd undoes what has landed.
type RevertCmd struct {
	ID string `arg:"" help:"A landed request's id, or a task's when one of its requests has landed."`
}

// Run asks for the revert, which is a task whose change people decide on.
func (c *RevertCmd) Run(ctx context.Context, sh *shell) error {
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	r, err := findRequest(ctx, sh, api, c.ID, "landed")
	if err != nil {
		return err
	}
	sent, err := api.Revert(ctx, r.ID)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.document(sent)
	}
	if err := sh.say("%s undoes %s on %s, once it is approved", line(sent.ID), commit(r.Commit), line(r.Target)); err != nil {
		return err
	}
	sh.howToFollow(api, sent.ID)
	return nil
}
