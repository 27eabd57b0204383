package main

import (
	"context"

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
func (c *ListCmd) Run(ctx context.Context, sh *shell) error {
	if c.Limit < 1 {
		return usage("--limit %d: write a number from 1 on.", c.Limit)
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	found, err := api.Delegations(ctx, client.Filter{State: plainState(c.State), Agent: c.Agent, Query: c.Query, Limit: c.Limit})
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.document(found.Raw)
	}
	if len(found.Items) == 0 {
		if *c == (ListCmd{Limit: c.Limit}) {
			sh.hint("No tasks yet. Send the first one: gatehouse send AGENT \"…\"")
			return nil
		}
		sh.hint("Nothing matches. Leave a filter out to see more.")
		return nil
	}
	rows := make([][]string, len(found.Items))
	for i, d := range found.Items {
		from := line(d.To)
		if d.From != "" {
			from = line(d.From) + " → " + from
		}
		rows[i] = []string{sh.state(d.State, 0), line(d.ID), from, brief(d.Text, 48), ago(d.CreatedAt, sh.now())}
	}
	if err := table(sh.out, rows); err != nil {
		return err
	}
	if found.Next != "" {
		sh.hint("There are more: --limit %d", 2*c.Limit)
	}
	return nil
}
