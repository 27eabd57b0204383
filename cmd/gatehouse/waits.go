package main

import "context"

// WaitsCmd tells who waits for whom.
type WaitsCmd struct {
	ID    string `arg:"" optional:"" help:"A task or delegation; without it all that is under way."`
	Limit int    `help:"At most so many, up to 200." default:"50" placeholder:"N"`
}

// Run prints one line for each delegation that lives.
func (c *WaitsCmd) Run(ctx context.Context, sh *shell) error {
	if c.Limit < 1 || c.Limit > 200 {
		return usage("--limit %d: write a number from 1 to 200.", c.Limit)
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	answer, err := api.Waits(ctx, c.ID, c.Limit)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.document(answer.Raw)
	}
	found := answer.Value
	if len(found.Items) == 0 {
		sh.hint("Nothing waits: no task is under way.")
		return nil
	}
	rows := make([][]string, len(found.Items))
	for i, w := range found.Items {
		rows[i] = []string{sh.state(w.State, 0), line(w.DelegationID), line(w.Agent), brief(w.Says, 80), ago(w.Since, sh.now())}
	}
	if err := table(sh.out, rows); err != nil {
		return err
	}
	sh.hint("%s", found.Note)
	if found.Next != "" {
		sh.hint("There are more: --limit %d", min(200, 2*c.Limit))
	}
	return nil
}
