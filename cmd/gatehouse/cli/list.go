package cli

import (
	"context"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// ListCmd lists delegations.
type ListCmd struct {
	State string `help:"Only those in this state." placeholder:"STATE"`
	Agent string `help:"Only those of this agent." placeholder:"AGENT"`
	Query string `help:"Only those whose text has these words." placeholder:"WORDS"`
	Limit int    `help:"At most so many." default:"50" placeholder:"N"`
}

// Run prints one line for each.
func (c *ListCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.Limit < 1 {
		return console.Usage("--limit %d: write a number from 1 on.", c.Limit)
	}
	found, err := api.Delegations(ctx, client.Filter{State: plainState(c.State), Agent: c.Agent, Query: c.Query, Limit: c.Limit})
	empty := "Nothing matches. Leave a filter out to see more."
	if *c == (ListCmd{Limit: c.Limit}) {
		empty = `No tasks yet. Send the first one: gatehouse send AGENT "…"`
	}
	return page(sh, found, err, func(d wire.Delegation) []string {
		from := console.Line(d.To)
		if d.From != "" {
			from = console.Line(d.From) + " → " + from
		}
		return []string{sh.State(d.State, 0), console.Line(d.ID), from, console.Brief(d.Text, 48), console.Ago(d.CreatedAt, sh.Now())}
	}, empty, 2*c.Limit)
}

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
