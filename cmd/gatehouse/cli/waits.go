package cli

import "gatehouse/cmd/gatehouse/internal/console"
import "context"

// WaitsCmd tells who waits for whom.
type WaitsCmd struct {
	ID    string `arg:"" optional:"" help:"A task or delegation; without it all that is under way."`
	Limit int    `help:"At most so many, up to 200." default:"50" placeholder:"N"`
}

// Run prints one line for each delegation that lives.
func (c *WaitsCmd) Run(ctx context.Context, sh *console.Shell) error {
	if c.Limit < 1 || c.Limit > 200 {
		return console.Usage("--limit %d: write a number from 1 to 200.", c.Limit)
	}
	api, err := sh.Client(ctx)
	if err != nil {
		return err
	}
	answer, err := api.Waits(ctx, c.ID, c.Limit)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.Document(answer.Raw)
	}
	found := answer.Value
	if len(found.Items) == 0 {
		sh.Hint("Nothing waits: no task is under way.")
		return nil
	}
	rows := make([][]string, len(found.Items))
	for i, w := range found.Items {
		rows[i] = []string{sh.State(w.State, 0), console.Line(w.DelegationID), console.Line(w.Agent), console.Brief(w.Says, 80), console.Ago(w.Since, sh.Now())}
	}
	if err := console.Table(sh.Out, rows); err != nil {
		return err
	}
	sh.Hint("%s", found.Note)
	if found.Next != "" {
		sh.Hint("There are more: --limit %d", min(200, 2*c.Limit))
	}
	return nil
}
