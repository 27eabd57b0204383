package main

import (
	"context"
	"io"

	"gatehouse/web/client"
)

// AuditCmd is about the history.
type AuditCmd struct {
	Verify AuditVerifyCmd `cmd:"" help:"Follow every hash of the history and name what does not fit."`
	List   AuditListCmd   `cmd:"" help:"Search requests, delegations or events."`
	Export AuditExportCmd `cmd:"" help:"Print the history."`
	Key    AuditKeyCmd    `cmd:"" help:"Print the fingerprints of the keys that seal the history."`
}

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
func (c *AuditExportCmd) Run(ctx context.Context, sh *shell) error {
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	if sh.JSON && c.Format == "csv" {
		return usage("--json and --format csv exclude each other. Leave one out.")
	}
	if c.ID != "" {
		if c.Filter+c.List+c.From+c.To != "" || c.Format == "csv" {
			return usage("The evidence on one request is a bundle of its own. Leave the other flags out.")
		}
		return api.ExportRequest(ctx, c.ID, rawOut(sh))
	}
	if c.Filter != "" || c.List != "" {
		if c.From != "" || c.To != "" {
			return usage("--filter and --list exclude --from and --to. Write the period into the line: time:2026-07-01..2026-09-30")
		}
		return api.ExportLine(ctx, client.Line{List: c.List, Filter: c.Filter}, c.Format, rawOut(sh))
	}
	return api.Export(ctx, c.Format, c.From, c.To, rawOut(sh))
}

// rawOut is stdout without the plain signs of ui.md: an export is exact.
func rawOut(sh *shell) io.Writer {
	if w, ok := sh.out.(asciiWriter); ok {
		return w.to
	}
	return sh.out
}
