package cli

import (
	"context"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
)

// ListCmd lists delegations.
type ListCmd struct {
	State string `help:"Only those in this state." placeholder:"STATE"`
	Agent string `help:"Only those of this agent." placeholder:"AGENT"`
	Query string `help:"Only those whose text has these words." placeholder:"WORDS"`
	Limit int    `help:"At most so many." default:"50" placeholder:"N"`
}

// Run prints one line for each.
func (c *ListCmd) Run(ctx context.Context, sh *console.Shell) error {
	if c.Limit < 1 {
		return console.Usage("--limit %d: write a number from 1 on.", c.Limit)
	}
	api, err := sh.Client(ctx)
	if err != nil {
		return err
	}
	found, err := api.Delegations(ctx, client.Filter{State: plainState(c.State), Agent: c.Agent, Query: c.Query, Limit: c.Limit})
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.Document(found.Raw)
	}
	if len(found.Items) == 0 {
		if *c == (ListCmd{Limit: c.Limit}) {
			sh.Hint("No tasks yet. Send the first one: gatehouse send AGENT \"…\"")
			return nil
		}
		sh.Hint("Nothing matches. Leave a filter out to see more.")
		return nil
	}
	rows := make([][]string, len(found.Items))
	for i, d := range found.Items {
		from := console.Line(d.To)
		if d.From != "" {
			from = console.Line(d.From) + " → " + from
		}
		rows[i] = []string{sh.State(d.State, 0), console.Line(d.ID), from, console.Brief(d.Text, 48), console.Ago(d.CreatedAt, sh.Now())}
	}
	if err := console.Table(sh.Out, rows); err != nil {
		return err
	}
	if found.Next != "" {
		sh.Hint("There are more: --limit %d", 2*c.Limit)
	}
	return nil
}
