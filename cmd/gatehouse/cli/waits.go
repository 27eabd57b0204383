package cli

import (
	"context"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// WaitsCmd tells who waits for whom.
type WaitsCmd struct {
	ID    string `arg:"" optional:"" help:"A task or delegation; without it all that is under way."`
	Limit int    `help:"At most so many, up to 200." default:"50" placeholder:"N"`
}

// Run prints one line for each delegation that lives.
func (c *WaitsCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.Limit < 1 || c.Limit > 200 {
		return console.Usage("--limit %d: write a number from 1 to 200.", c.Limit)
	}
	answer, err := api.Waits(ctx, c.ID, c.Limit)
	if err != nil {
		return err
	}
	found := answer.Value
	err = console.List(sh, answer.Raw, found.Items, "Nothing waits: no task is under way.", func(w wire.Wait) []string {
		return []string{sh.State(w.State, 0), console.Line(w.DelegationID), console.Line(w.Agent), console.Brief(w.Says, 80), console.Ago(w.Since, sh.Now())}
	})
	if err != nil || len(found.Items) == 0 {
		return err
	}
	sh.Hint("%s", found.Note)
	if found.Next != "" {
		sh.Hint("There are more: --limit %d", min(200, 2*c.Limit))
	}
	return nil
}
