package cli

import (
	"context"
	"io"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
)

// AuditExportCmd prints the history.
type AuditExportCmd struct {
	ID     string `arg:"" optional:"" help:"One request: the evidence on it, as a bundle."`
	From   string `help:"From this time or day (UTC) on." placeholder:"2026-07-01"`
	To     string `help:"Before this time or day (UTC)." placeholder:"2026-10-01"`
	Filter string `help:"Only what this line takes, newest first; days are UTC." placeholder:"approver:bob time:30d"`
	List   string `help:"What the line is for: requests, delegations or events." enum:",requests,delegations,events" default:"" placeholder:"requests"`
	Format string `help:"jsonl (sealed, audit verify checks it) or csv (no seal)." enum:"jsonl,csv" default:"jsonl" placeholder:"jsonl"`
}

// Run streams the history to stdout.
func (c *AuditExportCmd) Run(ctx context.Context, sh *console.Shell) error {
	api, err := sh.Client(ctx)
	if err != nil {
		return err
	}
	if sh.JSON && c.Format == "csv" {
		return console.Usage("--json and --format csv exclude each other. Leave one out.")
	}
	if c.ID != "" {
		if c.Filter+c.List+c.From+c.To != "" || c.Format == "csv" {
			return console.Usage("The evidence on one request is a bundle of its own. Leave the other flags out.")
		}
		return api.ExportRequest(ctx, c.ID, rawOut(sh))
	}
	if c.Filter != "" || c.List != "" {
		if c.From != "" || c.To != "" {
			return console.Usage("--filter and --list exclude --from and --to. Write the period into the line: time:2026-07-01..2026-09-30")
		}
		return api.ExportLine(ctx, client.Line{List: c.List, Filter: c.Filter}, c.Format, rawOut(sh))
	}
	return api.Export(ctx, c.Format, c.From, c.To, rawOut(sh))
}

// rawOut is stdout without the plain signs of ui.md: an export is exact.
func rawOut(sh *console.Shell) io.Writer {
	if w, ok := sh.Out.(console.AsciiWriter); ok {
		return w.To
	}
	return sh.Out
}
