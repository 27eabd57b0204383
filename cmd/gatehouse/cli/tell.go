package cli

import (
	"context"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// TellCmd leaves a message for an agent that works.
type TellCmd struct {
	ID   string   `arg:"" help:"An id, or its last 6 characters or more; a task's is the agent that it was sent to."`
	Text []string `arg:"" help:"What to say; - reads it from standard input."`
}

// Run leaves it. An agent that cannot hear it any more is exit 1.
func (c *TellCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	text, err := sh.Words(c.Text)
	if err != nil {
		return err
	}
	got, err := api.Tell(ctx, c.ID, wire.Words{Text: text})
	return act(sh, got, err, func(m wire.Message) error {
		return sh.Then(sh.Say("%s is told as soon as it can hear", console.Line(m.Agent)), "  follow: gatehouse watch %s", console.Short(m.DelegationID))
	})
}
